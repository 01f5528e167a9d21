"""Text that repeats: the automaton against a search through all places of the text."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.lookup import BELIEVED, LENGTHS, NOTED, Match, Repeats, SuffixAutomaton
from support.examples import examples

TEXTS = st.lists(st.integers(0, 2), max_size=40)
LINES = st.lists(st.integers(0, 3), max_size=8)


def automaton(text: Sequence[int]) -> SuffixAutomaton:
    """One that has read this text."""
    made = SuffixAutomaton()
    made.extend(text)
    return made


def walked(made: SuffixAutomaton, line: Sequence[int]) -> Match:
    """The match of its text with a line behind it."""
    match = made.match
    for number in line:
        match = made.after(match, number)
    return match


def searched(text: Sequence[int], line: Sequence[int]) -> tuple[int, list[int]]:
    """The length of the longest suffix of both that stands in the text with something behind it, and all that stands there."""
    whole = [*text, *line]
    for length in range(len(whole), 0, -1):
        suffix = whole[len(whole) - length :]
        places = [end for end in range(length, len(text)) if list(text[end - length : end]) == suffix]
        if places:
            return length, [text[place] for place in places]
    return 0, []


@examples(500)
@given(TEXTS, LINES)
def test_the_match_is_the_longest_suffix_that_stood_before(text: list[int], line: list[int]) -> None:
    assert walked(automaton(text), line).length == searched(text, line)[0]


@examples(500)
@given(TEXTS, LINES)
def test_what_followed_comes_newest_first(text: list[int], line: list[int]) -> None:
    made = automaton(text)
    _, followed = searched(text, line)
    newest = list(dict.fromkeys(reversed(followed)))
    found = made.continuations(walked(made, line))
    assert set(found) == set(newest)
    if len(text) <= NOTED:  # no shorter suffix is noted late
        assert found == newest


@examples(200)
@given(TEXTS, LINES, TEXTS)
def test_looking_changes_nothing(text: list[int], line: list[int], rest: list[int]) -> None:
    looked, untouched = automaton(text), automaton(text)
    before = looked.match
    walked(looked, line)
    assert looked.match == before
    looked.extend(rest)
    untouched.extend(rest)
    assert looked.match == untouched.match
    assert looked.continuations(looked.match) == untouched.continuations(untouched.match)


@examples(200)
@given(TEXTS, st.integers(2, 12))
def test_what_is_remembered_is_bounded_and_the_newest(text: list[int], most: int) -> None:
    made = SuffixAutomaton(most)
    made.extend(text)
    whole = automaton(text)
    assert made.match.length <= min(most, whole.match.length)
    assert made.match.length >= searched(text[-(most // 2) :], [])[0]
    assert made.states <= 2 * most


def test_memory_grows_with_the_text_alone() -> None:
    """Texts with the most states, and with the most suffixes to note."""
    for text in ([0] * 2000, [0, 1] * 1000, [0, *[1] * 1999], [0, *[1] * 1998, 2]):
        made = automaton(text)
        assert made.states < 2 * len(text)


def test_nothing_follows_what_is_new() -> None:
    made = automaton([1, 2, 3])
    assert made.match.length == 0
    assert made.continuations(made.match) == []
    assert made.continuations(SuffixAutomaton().match) == []


def test_a_text_said_twice_is_found_to_its_end() -> None:
    said = list(range(100))
    made = automaton([*said, -1, *said[:10]])
    assert made.match.length == 10
    match = made.match
    for number in said[10:]:
        assert made.continuations(match) == [number]
        match = made.after(match, number)
    assert match.length == 100


def test_repeats_start_at_what_is_believed_and_are_learned_by_length() -> None:
    repeats = Repeats()
    for place, length in enumerate((*LENGTHS, LENGTHS[-1] + 1)):
        assert [repeats.chance(length, rank) for rank in (0, 1)] == [BELIEVED[0][place], BELIEVED[1][place]]
    for _ in range(200):
        repeats.observe(30, 0, stood=False)
        repeats.observe(2, 1, stood=True)
    assert repeats.chance(21, 0) < 0.1
    assert repeats.chance(2, 1) > 0.9
    assert repeats.chance(20, 0) == BELIEVED[0][6]
    assert repeats.chance(2, 0) == BELIEVED[0][1]
    for _ in range(200):
        repeats.observe(30, 0, stood=True)
    assert repeats.chance(500, 0) > 0.9, "texts change"
