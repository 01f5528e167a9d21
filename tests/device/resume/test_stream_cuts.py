"""A stream that is cut: at any boundary, with any patience, it goes on with the very answer, and with what was drafted."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import Request, SamplingParams
from antiphon.core.stream import AUTO, LOCKSTEP, OBJECTIVES
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.models.toy import named_toy
from antiphon.options import NoOptions
from antiphon.wire.messages import Draft
from device.resume.cuts import asked, assert_cut_anywhere, assert_same, frames, sent, written
from support.broken_links import Network, boundaries, broken, random_delay
from support.examples import examples

PATIENCES = [AUTO, 0.0, 20.0, LOCKSTEP]
ALIKE = named_toy("toy-cloud"), named_toy("toy-cloud")
"""A drafter that is always right, so that lines are long."""


def streamed(patience: float, objective: Any = "speed", temperature: float = 1.0, tokens: int = 10) -> Request:
    options = CoupledOptions(3, -1, patience, objective)
    return replace(asked("coupled", tokens=tokens, temperature=temperature), options=options)


def alone(what: Request) -> Request:
    return replace(what, method="cloud", options=NoOptions())


@pytest.mark.core(2)
@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    ("patience", "objective"),
    [*((AUTO, objective) for objective in OBJECTIVES), *((patience, "speed") for patience in PATIENCES[1:])],
)
def test_a_cut_at_every_boundary(patience: float, objective: str, temperature: float) -> None:
    what = streamed(patience, objective, temperature, tokens=8)
    assert written(what)[0].token_ids == written(alone(what))[0].token_ids
    resumed = assert_cut_anywhere(what)
    assert set(resumed) <= {0, 1}
    assert resumed[1] > resumed[0]


@pytest.mark.parametrize("patience", PATIENCES)
def test_it_goes_on_with_what_was_drafted(patience: float) -> None:
    """The first message of the new session holds all drafts that no verdict had settled."""
    what, most = streamed(patience, tokens=30), 0
    whole, network = written(what, models=lambda: ALIKE)
    for cut in boundaries(frames(network))[3::5]:
        result, lost = written(what, cut, models=lambda: ALIKE)
        assert_same(result, whole)
        again = sent(lost)[-1]
        if result.answer.resumed and again:
            most = max(most, again[0].count)
    assert most >= 3


@pytest.mark.medium
@examples(120)
@given(
    patience=st.sampled_from(PATIENCES),
    objective=st.sampled_from([*OBJECTIVES]),
    draft_length=st.sampled_from([0, 1, 2, 6, 16]),
    temperature=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**64 - 1),
    tokens=st.integers(1, 40),
    delays=st.tuples(st.integers(0, 10_000), st.sampled_from([0.0, 0.001, 0.01, 0.1])),
    seconds=st.tuples(st.sampled_from([0.0, 0.001, 0.004, 0.02, 0.1]), st.sampled_from([0.0, 0.001, 0.03])),
    cuts=st.lists(st.tuples(st.integers(1, 60), st.sampled_from(["before", "after", "goodbye"])), max_size=2),
    alike=st.booleans(),
)
def test_the_answer_is_that_of_cloud_whatever_is_late_and_lost(
    patience: float,
    objective: Any,
    draft_length: int,
    temperature: float,
    seed: int,
    tokens: int,
    delays: tuple[int, float],
    seconds: tuple[float, float],
    cuts: list[tuple[int, str]],
    alike: bool,
) -> None:
    options = CoupledOptions(draft_length, -1, patience, objective)
    ours = replace(
        asked("coupled", tokens=tokens), options=options, sampling=SamplingParams(temperature=temperature), seed=seed
    )

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, Result]:
        network.arm(*cuts)
        return await device.generate(ours, connection), await device.generate(alone(ours), connection)

    draft, verify = seconds
    costs = (lambda width, length: draft, lambda width, length: verify)
    models = ALIKE if alike else (named_toy("toy-device"), named_toy("toy-cloud"))
    found, theirs = broken(test, models=lambda: models, delay=random_delay(*delays), costs=costs)
    assert found.token_ids == theirs.token_ids
    assert found.finish_reason == theirs.finish_reason


def test_lines_are_told_by_their_epochs_after_a_loss_too() -> None:
    """Rounds and epochs count from 0 again in the new session."""
    what = streamed(AUTO, tokens=30)
    _, network = written(what, models=lambda: ALIKE)
    _, lost = written(what, (frames(network) // 2, "before"), models=lambda: ALIKE)
    first, second = sent(lost)
    assert isinstance(second[0], Draft)
    assert second[0].round == 0
    assert max(draft.round for draft in first) >= 0
