"""Words as the full-text index sees them: what is indexed of a text, and what is asked for by a question."""

import hashlib
import re
import unicodedata

from antiphon.retrieval.passages import UNSPACED

TOKENIZER = "porter unicode61 remove_diacritics 2"
TITLE_WEIGHT = 2.0
_TERMS_VERSION = 1  # raise it with any change of what `terms` or `indexed` give
MAX_TERMS = 256
"""Different words of a question that are looked for; a longer one is a document."""

_ENGLISH = """
a about above after again against all am an and any are aren as at be because been before being below between both but by can
could couldn did didn do does doesn doing down during each few for from further had hadn has hasn have haven having he her
here hers herself him himself his how i if in into is isn it its itself just me more most my myself no nor not now of off on
once only or other our ours ourselves out over own same she should shouldn so some such than that the their theirs them
themselves then there these they this those through to too under until up very was wasn we were weren what when where which
while who whom whose why will with would wouldn you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_ENGLISH.split())
_ENDING = re.compile(r"['’](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)  # of "what's" and "isn't", not of "vitamin D"
_UNSPACED = re.compile(f"[{UNSPACED}]")
_TERM = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")


def indexed(text: str) -> str:
    """The text as it is indexed: characters of scripts without spaces stand apart, so that each is a word."""
    return _UNSPACED.sub(r" \g<0> ", text)


def terms(question: str) -> list[str]:
    """The different words of a question without stop words, which say nothing; all of them if nothing else is left."""
    text = _ENDING.sub("", unicodedata.normalize("NFC", question)).lower()
    found = dict.fromkeys(_TERM.findall(text))
    return ([term for term in found if term not in STOP_WORDS] or list(found))[:MAX_TERMS]


def expression(question: str) -> str:
    """An FTS5 expression: any of the question's words. Empty if it has none."""
    return " OR ".join(f'"{term}"' for term in terms(question))


def identity() -> str:
    """Everything here that changes scores, for the name of a scorer."""
    stop_words = hashlib.sha256(" ".join(sorted(STOP_WORDS)).encode()).hexdigest()[:8]
    return f"fts5 k1=1.2 b=0.75 title={TITLE_WEIGHT!r} {TOKENIZER} terms={_TERMS_VERSION} stop={stop_words}"
