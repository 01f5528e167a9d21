"""Words as an index sees them: one way for what is indexed of a text and for what is asked for by a question.

A text is folded (`folding`) and split where its script changes. Latin words are stemmed as English; a question also asks for
all that begin with the same four letters, so that other languages are found in other forms. In alphabets that are not Latin
each word stands beside its overlapping parts of three letters. Korean, whose particles join words, is cut into overlapping
pairs of syllables, Chinese and Japanese into characters and pairs of them; Thai, Lao, Khmer, Burmese and Tibetan, which set no
words apart, into overlapping parts of three characters. Chosen by recall: see `antiphon-lab bench retrieval`.
"""

import hashlib
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from antiphon.retrieval.folding import folded

TITLE_WEIGHT = 2.0
PART, BEGINNING = "~", "^"
"""What marks a part of a word, and how words begin that are asked for: both count for less than a whole one."""
PART_WEIGHT = 0.3
LETTERS_OF_BEGINNING = 4
_VERSION = 2  # raise it with any change of what `Words` or `folded` give
MAX_TERMS = 256
"""Different words of a question that are looked for; a longer one is a document."""

HAN = (
    "\u3005-\u3007\u3040-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00016ff0-\U00018dff\U0001aff0-\U0001b2ff\U00020000-\U000323af"
)
"""Han, Kana and their like, written without spaces, as a range of a regular expression."""
TAI = "\u0e00-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua980-\ua9df\ua9e0-\ua9ff\uaa60-\uaadf"
"""Thai, Lao, Tibetan, Burmese, Khmer and their like, whose words are not set apart either."""
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"

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
_RUN = re.compile(f"[{HAN}]+|[{TAI}]+|[{_HANGUL}]+|[^\\s{HAN}{TAI}{_HANGUL}]+")
_UNSPACED = re.compile(f"[{HAN}{TAI}{_HANGUL}]")
_KINDS = re.compile(f"([{HAN}])|([{TAI}])|([{_HANGUL}])")
_LETTERS = 3
_MOST_KEPT = 200_000


@dataclass(frozen=True, slots=True)
class Numbered:
    """Words of texts by number, one text after the other, and how many each text has."""

    numbers: NDArray[np.int64]
    lengths: NDArray[np.int64]


class Words:
    """Takes texts apart, and remembers the stems, which FTS5's Porter finds in an SQLite of its own. One thread at a time.

    Words have numbers, which are good until the next call of `of`; `names` has the words.
    """

    def __init__(self) -> None:
        self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._memory.execute("CREATE VIRTUAL TABLE words USING fts5 (word, content='', tokenize='porter ascii')")
        self._memory.execute("CREATE VIRTUAL TABLE found USING fts5vocab (words, instance)")
        self._asked: dict[str, str] = {}
        self._forget()

    def of(self, texts: Iterable[str]) -> Numbered:
        """The words of each text, and parts of them, as often as they stand there."""
        # Forgotten as a whole, now and then: to know which words were used last would cost more than to stem them again.
        if len(self._runs) > _MOST_KEPT:
            self._forget()
        split = [runs(text) for text in texts]
        lengths = np.fromiter(map(len, split), np.int64, len(split))
        found = np.fromiter(map(self._runs.__getitem__, chain.from_iterable(split)), np.int64)
        self._learn()
        many = self._first[found + 1] - self._first[found]
        numbers = np.repeat(self._first[found] - np.cumsum(many) + many, many) + np.arange(many.sum())
        of_text = np.repeat(np.arange(len(split)), lengths)
        return Numbered(self._numbers[numbers], np.bincount(of_text, many, len(split)).astype(np.int64))

    def asked(self, question: str) -> list[str]:
        """The different words of a question without stop words, which say nothing; all of them if nothing else is left.

        And the beginnings of its Latin words, each marked: it stands for all words that begin so.
        """
        if len(self._asked) > _MOST_KEPT:
            self._asked.clear()
        split = runs(question)
        telling = [run for run in split if run not in STOP_WORDS] or split
        stems = self._remembered([run for run in telling if run.isascii()])
        found = (_of_latin(run, stem) if (stem := stems.get(run)) else _parts(run) for run in telling)
        return list(dict.fromkeys(chain.from_iterable(found)))[:MAX_TERMS]

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    def _forget(self) -> None:
        self.names: list[str] = []
        self._runs, self._known = _numbering(), 0
        self._terms = _numbering()
        self._first, self._numbers = np.zeros(1, np.int64), np.zeros(0, np.int64)

    def _learn(self) -> None:
        """Take apart what was numbered since the last time."""
        new = list(islice(self._runs, self._known, None))
        stems = iter(self._stems([run for run in new if run.isascii()]))
        words: list[str] = []
        lengths: list[int] = []
        for run in new:  # without a tuple for each, which the collector of garbage would look at again and again
            before = len(words)
            if run.isascii():
                words.append(next(stems))
            else:
                words += _parts(run)
            lengths.append(len(words) - before)
        numbers = np.fromiter(map(self._terms.__getitem__, words), np.int64, len(words))
        ends = len(self._numbers) + np.cumsum(np.array(lengths, np.int64))
        self._first, self._numbers = np.append(self._first, ends), np.append(self._numbers, numbers)
        self.names += islice(self._terms, len(self.names), None)
        self._known = len(self._runs)

    def _remembered(self, latin: Sequence[str]) -> dict[str, str]:
        """The stems of words of questions, and others: many are asked for again."""
        if new := [word for word in latin if word not in self._asked]:
            self._asked |= zip(new, self._stems(new), strict=True)
        return self._asked

    def _stems(self, latin: Sequence[str]) -> list[str]:
        self._memory.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self._memory.execute("INSERT INTO words (rowid, word) VALUES (1, ?)", (" ".join(latin),))
        found = self._memory.execute("SELECT term FROM found ORDER BY offset")
        return [stem or word for (stem,), word in zip(found, latin, strict=True)]


def _numbering() -> defaultdict[str, int]:
    """Gives what it is asked for a number, the next one if it is new."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def runs(text: str) -> list[str]:
    """A text folded, and split at its spaces and where its script changes; what folds to nothing stands as it is."""
    letters = folded(_ENDING.sub("", text) if "'" in text or "’" in text else text)
    found = _RUN.findall(letters) if not letters.isascii() and _UNSPACED.search(letters) else letters.split()
    return found or [word for word in text.split() if any(map(str.isalnum, word))]


def _of_latin(word: str, stem: str) -> tuple[str, ...]:
    """What is asked for: the stem, and how a longer word begins."""
    # The beginning of a number is another number.
    if len(word) > LETTERS_OF_BEGINNING and not word.isdigit():
        return stem, BEGINNING + word[:LETTERS_OF_BEGINNING]
    return (stem,)


def _parts(run: str) -> Iterator[str]:
    """Of a run of one script that is not Latin alone."""
    kind = _KINDS.match(run)
    match kind.lastindex if kind else None:
        case 1:
            yield from run
            yield from _overlapping(run, 2) if len(run) > 1 else ()
        case 2:
            yield from _overlapping(run, _LETTERS)
        case 3:
            yield from _overlapping(run, 2)
        case _:
            yield run
            yield from (PART + part for part in _overlapping(run, _LETTERS)) if len(run) >= _LETTERS else ()


def _overlapping(run: str, length: int) -> Iterator[str]:
    return (run[at : at + length] for at in range(max(1, len(run) - length + 1)))


def identity() -> str:
    """Everything here that changes scores, for the name of a scorer."""
    stop_words = hashlib.sha256(" ".join(sorted(STOP_WORDS)).encode()).hexdigest()[:8]
    return f"title={TITLE_WEIGHT!r} parts={PART_WEIGHT!r} words={_VERSION} stop={stop_words}"
