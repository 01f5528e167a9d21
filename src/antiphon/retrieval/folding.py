"""Characters as an index sees them: forms of one letter are one letter, whatever Unicode has for them.

Compatibility forms are taken apart (ligatures, full and half width, sub- and superscripts, presentation forms), cases folded,
digits are ASCII's, accents are dropped, and so are the vowel points of Arabic and Hebrew, the nukta, soft hyphens and all that
has no width. What is a vowel of its script stays: the marks of Devanagari, Thai and the like. Each character is looked at by
itself, decomposed, and the whole is composed again: so a text and its decomposed form are folded alike.
"""

import unicodedata
from typing import Final

_DROPPED_RANGES = (
    (0x0300, 0x036F), (0x0483, 0x0489), (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5),
    (0x05C7, 0x05C7), (0x0610, 0x061A), (0x0640, 0x0640), (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC),
    (0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED), (0x0711, 0x0711), (0x0730, 0x074A), (0x0898, 0x089F),
    (0x08CA, 0x08FF),
    (0x1AB0, 0x1ACE), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F), (0xE0100, 0xE01EF),
)  # fmt: skip
"""Accents, points, variation selectors, and the tatweel, which only stretches a word."""
_NUKTAS = (0x093C, 0x09BC, 0x0A3C, 0x0ABC, 0x0B3C, 0x0C3C, 0x0CBC, 0x1037, 0x110BA, 0x11173, 0x1133C, 0x11446)
_DROPPED = frozenset(_NUKTAS).union(*(range(first, last + 1) for first, last in _DROPPED_RANGES))
_ALIKE: Final = {
    "ı": "i", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe", "ŋ": "n",
    "ٱ": "ا", "ى": "ي", "ی": "ي", "ې": "ي", "ک": "ك", "ة": "ه", "ھ": "ه", "ہ": "ه", "ە": "ه",
}  # fmt: skip
"""Letters that are typed for one another, and have no decomposition."""


def folded(text: str) -> str:
    """The text with spaces for all that is no part of a word, and its letters folded."""
    # Composed again at the end: Hangul would else stay in letters, and the patterns of scripts look for syllables.
    return unicodedata.normalize("NFC", text.translate(_FOLDS))


class _Folds(dict[int, str]):
    """What each character becomes, found out when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = fold = _fold(chr(code))
        return fold


_FOLDS = _Folds()


def _fold(character: str) -> str:
    if not _of_a_word(character):
        compatible = unicodedata.normalize("NFKD", character)
        return "" if _dropped(character) else " " if compatible == character else "".join(map(_simple, compatible))
    fold = "".join(map(_simple, unicodedata.normalize("NFKD", character))).strip()
    return fold or ("" if _dropped(character) else character)


def _simple(character: str) -> str:
    """Of a character that has no decomposition."""
    if _dropped(character):
        return ""
    if not _of_a_word(character):
        return " "
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return "".join(_alike(part) for part in unicodedata.normalize("NFKD", character.casefold()) if not _dropped(part))


def _alike(letter: str) -> str:
    return _ALIKE.get(letter, letter)


def _of_a_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM" or unicodedata.category(character) == "Co"


def _dropped(character: str) -> bool:
    return ord(character) in _DROPPED or unicodedata.category(character) == "Cf"
