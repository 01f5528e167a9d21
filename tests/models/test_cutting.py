"""Long texts are tokenised in pieces: the same tokens for what people write, and never a time that grows with a square."""

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antiphon.models.base import REPLACEMENT, Model, spell
from antiphon.models.cutting import MOST, Cuts
from antiphon.models.toy import ToyModel, toy_pieces
from support.examples import examples
from support.tinymodel import load_tiny

DOCS = Path(__file__).parents[2] / "docs"
RULES = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|_+|\s+(?!\S)|\s+",
    "one match for a mark and the word behind it": r"[^\r\n\w]?[^\W\d_]+|\d{1,3}| ?[^\s\w]+[\r\n]*|_+|\s*[\r\n]+|\s+(?!\S)|\s+",
    "no rule at all": r"(?s).+",
}


class Merging:
    """Byte-pair encoding over characters, as the books have it: the earliest merge that can be made, until none can."""

    def __init__(self, rule: str, merges: Sequence[tuple[str, str]]) -> None:
        self._rule, self._rank = re.compile(rule), {pair: rank for rank, pair in enumerate(merges)}
        self.pieces = [left + right for left, right in merges]

    def __call__(self, text: str) -> list[str]:
        return [token for word in self._rule.findall(text) for token in self._merged(list(word))]

    def _merged(self, parts: list[str]) -> list[str]:
        while len(parts) > 1:
            rank, place = min((self._rank.get(pair, 10**9), place) for place, pair in enumerate(pairwise(parts)))
            if rank == 10**9:
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return parts


def trained(rule: str, text: str, seed: int, merges: int = 60) -> Merging:
    """Merges of stretches that stand in the text: what a tokenizer's training finds, in any order."""
    chance, words = random.Random(seed), re.compile(rule).findall(text)
    parts: list[tuple[str, str]] = []
    for _ in range(merges):
        word = chance.choice(words)
        if len(word) > 1:
            start = chance.randrange(len(word) - 1)
            known = [left + right for left, right in parts if word.startswith(left + right, start)]
            left = max(known, key=len, default=word[start])
            if start + len(left) < len(word):
                parts.append((left, word[start + len(left)]))
    return Merging(rule, list(dict.fromkeys(parts)))


WORDS = st.sampled_from(
    ["the ", "mill ", "burned", " down", ". ", ",", "\n", "\n\n", "  ", "!", "12", "don't ", "x=f(y) ", "é", "«", "_a"]
)


@given(st.lists(WORDS, min_size=200, max_size=500).map("".join), st.sampled_from(list(RULES)), st.integers(0, 10**6))
@examples(30)
def test_what_is_cut_where_it_may_be_gives_the_tokens_of_the_whole(text: str, rule: str, seed: int) -> None:
    tokenize = trained(RULES[rule], text, seed)
    cuts = Cuts([piece.encode() for piece in tokenize.pieces])
    pieces = list(cuts.cut(text))
    free = [cuts._is_free(left[-1], right[0]) for left, right in pairwise(pieces)]
    assume(all(free))
    assert [token for piece in pieces for token in tokenize(piece)] == tokenize(text)


@given(st.text(max_size=3000))
def test_the_pieces_are_the_text_and_never_long(text: str) -> None:
    pieces = list(Cuts([b"ab", b"\xe2\x80", b" x"]).cut(text))
    assert "".join(pieces) == text
    assert all(len(piece) <= MOST for piece in pieces)


def test_prose_has_a_place_to_cut_within_reach_everywhere() -> None:
    cuts = Cuts([b" the", b"ing", b"\n\n"])
    for page in sorted(DOCS.glob("*.md")):
        pieces = list(cuts.cut(page.read_text(encoding="utf-8")))
        forced = [left for left, right in pairwise(pieces) if not cuts._is_free(left[-1], right[0])]
        assert all("---" in left or "|" in left for left in forced), page


@pytest.mark.parametrize("length", range(MOST - 20, MOST + 20))
def test_no_control_token_is_cut_in_two(length: int) -> None:
    cuts = Cuts([], ["<|im_end|>", "<|im_start|>"])
    text = "-" * length + "<|im_end|>\n<|im_start|>" + "-" * 2 * MOST
    for left, right in pairwise(cuts.cut(text)):
        assert (left[-1], right[0]) not in {*pairwise("<|im_end|>"), *pairwise("<|im_start|>")}


def test_pieces_of_a_text_for_a_tokenizer_that_puts_a_space_before_it(tmp_path: Path) -> None:
    from antiphon.models.llamacpp.tokenizer import tokenize as _tokenize

    model = load_tiny(tmp_path)
    text = "hello ab a hello. " * 200
    assert model.tokenize(text, special=True) == _tokenize(model._vocab, text, True)  # type: ignore[attr-defined]
    assert model.vocabulary.join(model.tokenize(text)) == text.encode()
    model.close()


SAMPLES = [
    "".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md")))[:60_000],
    Path(__file__).read_text(encoding="utf-8"),
    "Die alte Mühle brannte 1911 ab, und niemand weiß, warum; «das» sagte er. " * 60,
    "Старая мельница сгорела в 1911 году, и никто не знает почему. " * 60,
    "L’été où le moulin a brûlé, on n’a rien vu : c’était la nuit. " * 60,
    "if x == 1:\n    return foo(bar)[0]\n\n\nclass A(B):\n\tpass\n" * 60,
    '{"name": "mill", "year": 1911, "rows": [1, 2, 3]}\n' * 60,
]


@pytest.mark.model
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_real_tokenizers_give_the_same_tokens_for_what_people_write(
    name: str, special: bool, request: pytest.FixtureRequest
) -> None:
    from antiphon.models.llamacpp.tokenizer import tokenize as _tokenize

    model = request.getfixturevalue(name)
    for text in SAMPLES:
        assert model.tokenize(text, special=special) == _tokenize(model._vocab, text, special), text[:40]


class Counting(ToyModel):
    """A toy that loses some bytes, and counts what it is asked to tokenise."""

    def __init__(self) -> None:
        pieces = [piece for piece in toy_pieces() if piece not in (b"\x04", b"\x06", b"\x0b")]
        super().__init__(pieces)
        self.calls = self.characters = 0

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        self.calls, self.characters = self.calls + 1, self.characters + len(text)
        return super().tokenize(text, special=special)


LOSING: list[Callable[[int], str]] = [
    lambda size: "\x04" * size,
    lambda size: "a\x04" * (size // 2),
    lambda size: "a" * (size - 1) + "\x04",
    lambda size: "\x04\x06\x0b" * (size // 3),
    lambda size: "".join(random.Random(1).choices("ab \x04\x06", k=size)),
]


@pytest.mark.parametrize("make", LOSING)
def test_spelling_around_lost_characters_reads_a_text_a_few_times_not_once_a_level(make: Callable[[int], str]) -> None:
    model, text = Counting(), make(4000)
    ids = spell(model, text.encode())
    assert model.vocabulary.join(ids) == "".join(REPLACEMENT if byte in "\x04\x06\x0b" else byte for byte in text).encode()
    assert model.characters <= 5 * len(text) + 100


@pytest.mark.model
def test_endless_stretches_are_tokenised_in_a_moment(gemma3: Model) -> None:
    """A quarter of a megabyte: 200 s before."""
    import time

    for unit in (" ", "\r\n", "a", "!", "\t "):
        began = time.process_time()
        ids = spell(gemma3, (unit * 2**18)[: 2**18].encode())
        assert time.process_time() - began < 20
        assert gemma3.vocabulary.join(ids) == (unit * 2**18)[: 2**18].encode()
