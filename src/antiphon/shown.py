"""The one place where text of others becomes text for a terminal: of documents, models, peers, and the names of files.

Control characters would steer the terminal: its screen, title and clipboard, and forged lines. Direction marks would show a
sentence in another order than it has. Each is shown as its picture; nothing else is changed.
"""

import re

_NEWLINE, _TAB = 10, 9
_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*@|(?<=[?&])password=[^&\s]*&?", re.IGNORECASE)
_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_BLOCK = {code: chr(0x2400 + code) for code in range(32) if code not in (_NEWLINE, _TAB)}
_BLOCK |= {
    0x7F: "\u2421",
    **dict.fromkeys([*range(0x80, 0xA0), 0x2028, 0x2029, *_DIRECTIONS, *range(0xD800, 0xE000)], "\ufffd"),
}
_LINE = {**_BLOCK, _NEWLINE: "\u240a", _TAB: "\u2409"}


def block(text: str) -> str:
    """The text with its newlines and tabs, and a picture for each other control character, one for one."""
    return text.translate(_BLOCK)


def line(text: str) -> str:
    """The text on one line: a picture for newlines and tabs too, one for one."""
    return text.translate(_LINE)


def address(text: str) -> str:
    """Text with the addresses that stand in it, each without its password."""
    return _PASSWORD.sub(lambda found: f"{found[1]}@" if found[1] is not None else "", text)
