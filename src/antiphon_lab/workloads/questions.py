"""The questions of `antiphon-lab bench quality`: rows of public data sets to prompts.

Prompts are short and every answer is one line, for small base models on a CPU: an example or two fix the form of the answer.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from antiphon.errors import UsageError

ARTICLE_WORDS = 180
"""Words of an article that a model reads."""


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a task. references: the right answers; any one of them is right."""

    prompt: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Sum:
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class _Choice:
    question: str
    choices: tuple[str, str, str, str]
    answer: Annotated[int, msgspec.Meta(ge=0, le=3)]


@dataclass(frozen=True, slots=True)
class _Sentence:
    source: str
    reference: str


@dataclass(frozen=True, slots=True)
class _Article:
    article: str
    reference: str


@dataclass(frozen=True, slots=True)
class _Fact:
    question: str
    answers: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    gold_passages: Annotated[tuple[int, ...], msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class _Passage:
    id: int
    text: str


_Row = TypeVar("_Row")


def _rows(path: Path, kind: type[_Row]) -> list[_Row]:
    """The rows of a file of JSON lines. Raises UsageError where it is absent or a line does not fit."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): --data names the folder of the data sets") from error
    decoder = msgspec.json.Decoder(kind)
    found: list[_Row] = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"line {number} of {path} is no row of this data set ({error}): get the file again") from error
    return found


_GSM8K = """\
Question: Tom has 3 apples and buys 2 boxes of 4 apples each. How many apples does he have?
Answer: The boxes hold 2 * 4 = 8 apples. In all he has 3 + 8 = 11 apples. The answer is 11.

Question: A pen costs $2. Ann has $20 and buys 6 pens. How much money is left?
Answer: The pens cost 6 * 2 = $12. She has 20 - 12 = $8 left. The answer is 8.

Question: {}
Answer:"""
_MMLU = """\
Question: Which of these is a planet?
A. the Sun
B. Mars
C. the Moon
D. Paris
Answer: B

Question: What is 2 + 7?
A. 5
B. 10
C. 14
D. 9
Answer: D

Question: {}
A. {}
B. {}
C. {}
D. {}
Answer:"""
_WMT22 = """\
German: Guten Morgen, wie geht es dir?
English: Good morning, how are you?

German: Der Zug nach Berlin hat leider Verspätung.
English: Unfortunately, the train to Berlin is delayed.

German: {}
English:"""
_NEWS = "{}\n\nIn short, this article says that"
_NQ = """\
Passage: Lyon lies where the Rhône meets the Saône. It was founded by the Romans in 43 BC.
Question: when was lyon founded
Answer: 43 BC

Passage: {}
Question: {}
Answer:"""


def read_gsm8k(folder: Path) -> list[Question]:
    """Sums in words, by two worked examples."""
    rows = _rows(folder / "gsm8k_test_400.jsonl", _Sum)
    return [Question(_GSM8K.format(row.question), (row.answer.rpartition("#### ")[2],)) for row in rows]


def read_mmlu(folder: Path) -> list[Question]:
    """Four choices, the letter is asked for."""
    rows = _rows(folder / "mmlu_test_456.jsonl", _Choice)
    return [Question(_MMLU.format(row.question.strip(), *row.choices), ("ABCD"[row.answer],)) for row in rows]


def read_wmt22(folder: Path) -> list[Question]:
    """German sentences to put into English."""
    rows = _rows(folder / "wmt22_de_en_400.jsonl", _Sentence)
    return [Question(_WMT22.format(row.source), (row.reference,)) for row in rows]


def read_news(folder: Path) -> list[Question]:
    """The beginnings of articles to sum up, for which the reference has the whole."""
    rows = _rows(folder / "news_summaries_60.jsonl", _Article)
    return [Question(_NEWS.format(" ".join(row.article.split()[:ARTICLE_WORDS])), (row.reference,)) for row in rows]


def read_nq(folder: Path) -> list[Question]:
    """Questions with the passage that holds the answer."""
    texts = {row.id: row.text for row in _rows(folder / "nq_passages.jsonl", _Passage)}
    rows = _rows(folder / "nq_questions.jsonl", _Fact)
    if missing := {row.gold_passages[0] for row in rows} - texts.keys():
        raise UsageError(f"{folder / 'nq_passages.jsonl'} lacks passage {min(missing)}, which a question needs: get both again")
    return [Question(_NQ.format(texts[row.gold_passages[0]], row.question), row.answers) for row in rows]
