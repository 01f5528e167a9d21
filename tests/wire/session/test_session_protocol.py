"""The table of messages as the protocol page draws it."""

import re
from itertools import product

import pytest

from antiphon.wire import messages as m
from antiphon.wire import session as module
from antiphon.wire.session import (
    CONNECTION,
    SESSION,
    Life,
    Side,
    State,
)
from wire.session.ends import CLOUD, DEVICE, KINDS, TO_STATE, UNREADY, Ends, out_of_turn


@pytest.mark.parametrize("kind", KINDS)
def test_no_session_before_or_after_a_connection_is_ready(kind: type) -> None:
    for state, side in product(UNREADY, Side):
        ends = Ends().walk(TO_STATE[state])
        out_of_turn(ends, side, kind, 1)
        assert ends.agreed() == (state, Life.IDLE)


def edges(drawing: str) -> set[tuple[str, str, str]]:
    """What a drawing says: `A -X-> B` an edge, `-X*` one that stays, [] what may be left out, `X|Y` either."""
    found: set[tuple[str, str, str]] = set()
    current: set[str] = set()
    optional: list[set[str]] = []
    labels: list[str] = []
    for word in re.findall(r"-[\w|]+->|-\w+\*|[A-Z]+\b|\[|\]", drawing):
        if word == "[":
            optional.append(set(current))
        elif word == "]":
            current |= optional.pop()
        elif word.endswith("->"):
            labels = word[1:-2].split("|")
        elif word.endswith("*"):
            found |= {(place, word[1:-1], place) for place in current}
        else:
            found |= {(place, label, word) for place in current for label in labels}
            current, labels = {word}, []
    return found


def drawings(text: str | None) -> tuple[str, str]:
    """The drawing of a connection and that of a session."""
    found = re.search(r"^ +(NEW -Hello->.*?)^ +(IDLE -Open->[^\n]*)", text or "", re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1], found[2]


def edges_of(table: dict) -> set[tuple[str, str, str]]:
    return {(before.name, kind.__name__, after.name) for (before, _, kind), after in table.items()}


def test_the_drawing_is_the_table() -> None:
    connection, session = drawings(module.__doc__)
    anywhere = {edge for edge in edges_of(CONNECTION) if edge[1] in ("Ping", "Pong", "Failure", "Goodbye")}
    assert edges(connection) == edges_of(CONNECTION) - anywhere
    assert edges(session) == {edge for edge in edges_of(SESSION) if edge[0] != edge[2]}


def test_what_the_drawing_leaves_to_words() -> None:
    standing = set(State) - {State.CLOSED}
    for side, state in product(Side, standing):
        assert CONNECTION[state, side, m.Ping] is CONNECTION[state, side, m.Pong] is state
        assert CONNECTION[state, side, m.Failure] is CONNECTION[state, side, m.Goodbye] is State.CLOSED
    assert not [key for key in CONNECTION if key[0] is State.CLOSED]
    assert SESSION[Life.OPENING, DEVICE, m.Draft] is Life.OPENING
    assert (Life.OPENING, CLOUD, m.Verdict) not in SESSION
    assert (Life.CANCELLED, DEVICE, m.Draft) not in SESSION
    assert not [key for key in SESSION if key[:2] == (Life.ENDED, CLOUD)]


def test_every_message_has_its_turn_and_one_side_but_for_five() -> None:
    senders: dict[type, set[Side]] = {}
    for _, side, kind in [*CONNECTION, *SESSION]:
        senders.setdefault(kind, set()).add(side)
    assert set(senders) == set(KINDS)
    assert {kind for kind, sides in senders.items() if len(sides) == 2} == {m.Ping, m.Pong, m.Failure, m.Goodbye, m.Progress}
