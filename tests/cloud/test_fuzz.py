"""Frames that are changed, moved, repeated or made up: whatever comes, all comes back, and nobody else notices."""

import pytest

from antiphon.models.base import InUse, Model
from antiphon.models.toy import named_toy
from cloud.fuzzing import Outcome, fuzz
from support.examples import scaled


def require_unharmed(outcome: Outcome, frames: int) -> None:
    """No traceback; memory as it was after the first tenths, which fill what is kept on purpose."""
    assert outcome.frames >= frames
    assert not outcome.faults, outcome.faults[:3]
    assert outcome.mebibytes[-1] - outcome.mebibytes[3] < 48, outcome.mebibytes


@pytest.mark.parametrize("name", ["toy-cloud", pytest.param("toy-reader", marks=pytest.mark.slow)])
def test_a_toy_cloud_survives_any_frames(name: str) -> None:
    frames = scaled(2500)
    require_unharmed(fuzz(named_toy(name), frames, seed=1), frames)


@pytest.mark.model
@pytest.mark.slow
def test_a_real_model_gives_back_every_context_and_cell(smollm2: Model) -> None:
    outcome = fuzz(smollm2, 10_000, seed=2)
    require_unharmed(outcome, 10_000)
    assert smollm2.in_use == InUse()  # type: ignore[attr-defined]
