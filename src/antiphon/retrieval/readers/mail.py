"""E-mail: who wrote to whom, when and about what, and the text; attachments are counted."""

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage, MIMEPart
from pathlib import Path

from antiphon.retrieval.documents import Document, DocumentError, Scroll, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.decoding import lines_ended, read_whole
from antiphon.retrieval.readers.html import page_of

_HEADERS = ("Subject", "From", "To", "Cc", "Date")


def read_mail(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the subject, else the file's name without the ending."""
    message = email.message_from_bytes(read_whole(path), policy=email.policy.default)
    if not isinstance(message, EmailMessage) or not any(message.get(name) for name in _HEADERS):
        raise DocumentError(f"it is no mail: it has none of the headers {', '.join(_HEADERS)}")
    scroll = Scroll("paragraph")
    headers = [f"{name}: {' '.join(str(message[name]).split())}" for name in _HEADERS if message.get(name)]
    for number, text in enumerate(["\n".join(headers), *_text(message)], 1):
        scroll.write(text + "\n\n", number)
    attached = sum(1 for _ in message.iter_attachments()) if message.is_multipart() else 0
    told = (f"{attached} attachment{'s' * (attached > 1)} not read",) if attached else ()
    yield scroll.document(titled(str(message.get("Subject", "")), path.stem), told)


def _text(message: EmailMessage) -> list[str]:
    """The paragraphs of the plain text if there is one, else of the page."""
    body = message.get_body(("plain", "html"))
    if body is None:
        return []
    content = lines_ended(_content(body))
    if body.get_content_subtype() == "html":
        return page_of(content).blocks
    return [text for text in content.split("\n\n") if text.strip()]


def _content(body: MIMEPart) -> str:
    try:
        return str(body.get_content())
    except LookupError:  # of an encoding that nobody knows
        payload = body.get_payload(decode=True)
        return payload.decode(errors="replace") if isinstance(payload, bytes) else ""
