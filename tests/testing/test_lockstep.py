"""Two halves in lockstep, without a link."""

from collections import deque
from typing import Any

import pytest

from antiphon.core.distributions import Logits
from antiphon.errors import LinkError
from antiphon.methods.effects import Finish, Now, Receive, Send, ServingHalf, Step
from antiphon.models.toy import ToyModel
from antiphon.testing.distributions import SHARED
from antiphon.testing.lockstep import run_pair
from antiphon.wire.messages import Cancel, Draft


def test_in_a_pair_the_other_half_gets_to_run_before_nothing_has_come() -> None:
    """In lockstep `within` is one turn of the other half; the clock stands still."""
    log: list[object] = []

    def patient() -> ServingHalf:
        while (message := (yield Receive(0.0))) is None:
            log.append("nothing yet")
        log.append(message)
        log.append((yield Now()))
        return Finish.END

    def slow(context: Any) -> ServingHalf:
        for _ in range(2):
            row: Logits = yield Step(context, 0, [0], 1)
            assert row.shape == (1, 3)
            assert (yield Receive(0.0)) is None
        yield Send(Cancel())
        return Finish.END

    run_pair(patient(), slow(ToyModel(SHARED).open()))
    assert log == ["nothing yet", "nothing yet", Cancel(), 0.0]


def test_in_a_pair_a_half_that_only_looks_does_not_hide_a_deadlock() -> None:
    def looks_then_waits() -> ServingHalf:
        for _ in range(3):
            assert (yield Receive(0.0)) is None
        yield Receive()
        return Finish.END

    def waits() -> ServingHalf:
        yield Receive()
        return Finish.END

    with pytest.raises(LinkError, match="the halves wait for each other"):
        run_pair(looks_then_waits(), waits())


def test_in_a_pair_messages_keep_their_order() -> None:
    got: deque[object] = deque()

    def sends() -> ServingHalf:
        for number in range(5):
            yield Send(Draft(number, 0, b""))
        return Finish.END

    def reads() -> ServingHalf:
        for within in (0.0, None, 0.0, 1.0, None):
            got.append((yield Receive(within)).round)
        return Finish.END

    run_pair(reads(), sends())
    assert list(got) == [0, 1, 2, 3, 4]
