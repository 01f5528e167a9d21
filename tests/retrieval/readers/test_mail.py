"""Mail: who wrote what, in text or HTML, and what is attached."""

from pathlib import Path

from retrieval.readers.files import MAIL, complaint, only


def test_mail(tmp_path: Path) -> None:
    for kind, body in (("text/plain", "It burned.\n\nBye."), ("text/html", "<p>It burned.</p><p>Bye.</p>")):
        document = only(tmp_path, "f.eml", MAIL.format(kind=kind, body=body))
        assert document.title == "The old mühle"
        assert "From: Ada <ada@example.org>" in document.text
        assert "It burned.\n\nBye." in document.text
        assert list(document.told) == ["1 attachment not read"]
    assert "it is no mail" in complaint(tmp_path, "f.eml", "just text")
    unknown = "Subject: x\nContent-Type: text/plain; charset=nobody-knows\n\nwords"
    assert "words" in only(tmp_path, "f.eml", unknown).text
