"""Pages: their titles, their encodings, and the main text of each."""

from pathlib import Path

import pytest

from retrieval.readers.files import PAGE, only, place


def test_html(tmp_path: Path) -> None:
    document = only(tmp_path, "f.html", PAGE)
    assert document.title == "T & u"
    assert document.text.strip() == (
        "A head\n\nOne boldword, and more é.\n\nfirst\n\nsecond\n\nleft right\n\nx   y\n  z\n\nline\nbreak"
    )
    assert place(document, "boldword") == "paragraph 2"
    assert place(document, "first\n\nsecond") == "paragraphs 3-4"


def test_titles_of_html(tmp_path: Path) -> None:
    assert only(tmp_path, "f.htm", "<h1>A <b>head</b>\nline</h1><h1>no</h1>text").title == "A head line"
    assert only(tmp_path, "f.htm", "text").title == "f"
    assert only(tmp_path, "f.htm", "<svg><title>icon</title></svg><p>text").title == "f"
    page = "<title>own</title><body><svg><title>icon</title><text>drawn</text></svg>text<object><title>x</title></object>"
    document = only(tmp_path, "f.htm", page)
    assert (document.title, document.text.strip()) == ("own", "text")
    assert len(only(tmp_path, "f.htm", f"<title>{'long ' * 60_000}</title>text").title) <= 300


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "é€ naïve"), ("latin1", "cp1252", "“quoted”"), ("koi8-r", "koi8-r", "дом у реки"),
        ("gb2312", "gbk", "朱镕基 東京"), ("gb2312", "gb18030", "𠀀 㐀"), ("Shift_JIS", "cp932", "①髙﨑"),
        ("x-sjis", "cp932", "水車小屋 ㈱"), ("euc-kr", "cp949", "똠방각하 펲"), ("ks_c_5601-1987", "cp949", "방앗간 뷁"),
        ("windows-1251", "cp1251", "мельница"), ("big5", "big5", "水車小屋"), ("utf8", "utf-8", "“é”"),
        ("x-mac-cyrillic", "mac-cyrillic", "мельница"), ("unicode-1-1-utf-8", "utf-8", "é"),
    ],
)  # fmt: skip
def test_html_in_the_encoding_that_it_names(tmp_path: Path, label: str, encoding: str, text: str) -> None:
    for head in (f'<meta charset="{label}">', f"<meta content='text/html; charset={label}' http-equiv=content-type>"):
        assert text in only(tmp_path, "a.html", f"<html>{head}<p>{text}".encode(encoding)).text
    assert text in only(tmp_path, "a.xhtml", f'<?xml version="1.0" encoding="{label}"?><p>{text}</p>'.encode(encoding)).text


@pytest.mark.parametrize("label", ["undefined", "x-none", "", "none", "UTF-7", "{{charset}}", "x-user-defined", "é"])
def test_html_with_a_label_that_nobody_knows(tmp_path: Path, label: str) -> None:
    page = f'<meta charset="{label}"><p>The mill “by” the river.'
    assert "“by”" in only(tmp_path, "a.html", page).text
    assert (
        "café"
        in only(tmp_path, "a.html", (f'<meta charset="{label}">' + "<p>Le café est fermé, déjà." * 9).encode("cp1252")).text
    )


def test_html_with_a_wrong_label(tmp_path: Path) -> None:
    russian = "<p>Старая мельница у реки сгорела в прошлом году. " * 20
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=x>" + russian).encode()).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=utf-8>" + russian).encode("cp1251")).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=euc-kr>" + russian).encode()).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=utf-16>" + russian).encode()).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=koi8-r>" + russian).encode("utf-8-sig")).text
    assert "мельница" in only(tmp_path, "a.html", ("<!-- <meta charset=koi8-r> -->" + russian).encode()).text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<nav>Home About</nav><main><p>The story of the mill.</p></main><footer>Imprint</footer>", "The story of the mill."),
        (
            "<header role=banner>Site</header><p>Long enough text of a page.</p><aside>Ads</aside>",
            "Long enough text of a page.",
        ),
        ("<nav><p>All that there is on this page is here.</p></nav><p>x</p>", "All that there is on this page is here.\n\nx"),
        ("<article>One.</article><article>Two.</article>", "One.\n\nTwo."),
        ("<p hidden>no</p><p style='display: none'>no</p><p>yes<script>no</script><noscript>no</noscript>", "yes"),
        ("<p>a<br>b<table><tr><td>c<td>d<tr><td>e</table>", "a\nb\n\nc d\n\ne"),
    ],
)
def test_the_main_text_of_a_page(tmp_path: Path, page: str, text: str) -> None:
    assert only(tmp_path, "a.html", page).text.strip() == text
