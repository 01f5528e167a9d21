"""Drafts and words past an end, and what of them is dropped or refused."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_fields

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.core.resampling import quantise_lumped
from antiphon.core.rounding import Quantise, exactly, quantise_ratios, ratios_of
from antiphon.core.stream import LOCKSTEP
from antiphon.errors import AntiphonError, ModelError, ProtocolError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import DeviceSide, Method, Transcript
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Send
from antiphon.methods.probe import ProbeDevice, Question
from antiphon.methods.speculative.coupled import LockstepDevice
from antiphon.models.toy import ToyModel
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, method_distribution, target_distribution
from antiphon.testing.lockstep import run_pair
from antiphon.vocabulary import common_vocabulary
from antiphon.wire import messages as m


def past_the_end(method: Method) -> Method:
    drafting = LockstepDevice if method.name == "coupled" else method.device

    class Past(drafting):  # type: ignore[valid-type,misc]
        def drafts(self, most: int) -> Generator[Any, Any, list[Drafted]]:
            drafts: list[Drafted] = []
            while len(drafts) < most and self.lengths.more(drafts):
                drafts.append((yield from self.draft(drafts)))
            Past.behind += sum(self.side.transcript.is_end(draft.number) for draft in drafts[:-1])
            return drafts

        def _may_extend(self) -> bool:
            may = len(self._line) < self.side.transcript.remaining - 1
            Past.behind += may and any(self.side.transcript.is_end(draft.number) for draft in self._line)
            return may

    Past.behind = 0
    return replace(method, device=Past)


FEW = {"candidates": 1, "iterations": 1, "truncate": "off", "precision": 32}


PLAIN = SamplingParams(temperature=1.0)


def rounded(name: str, pair: Pair) -> Quantise:
    if name == "dssd":
        return quantise_ratios(ratios_of(32))
    return quantise_lumped(pair.common.size, ratios_of(32)) if name.startswith("xcosd") else exactly


@pytest.mark.core(2)
@pytest.mark.parametrize("pieces", [(SHARED, SHARED), (SMALL, LARGE)], ids=["shared", "different"])
@pytest.mark.parametrize("name", ["dsd", "tslt", "dssd", "xcosd", "xcosd-e", "coupled"])
def test_what_follows_an_accepted_end_is_dropped(name: str, pieces: tuple[Any, Any]) -> None:
    """The joint distribution is the target's; no half commits anything behind an end (`Transcript` would raise)."""
    pair, method = Pair(*pieces, seed=3), past_the_end(WITHOUT_DOCUMENTS[name])
    options = method.options_from({**FEW, "draft_length": 2, "patience": LOCKSTEP})
    tokens = 2 if name == "xcosd-e" else 3
    distribution = method_distribution(pair, method, options, PLAIN, tokens)
    assert distance(distribution, target_distribution(pair, PLAIN, tokens, rounded(name, pair))) < 1e-12
    assert method.device.behind > 0 or tokens < 3  # type: ignore[attr-defined]
    assert any(numbers[-1] in pair.common.ends and len(numbers) < tokens for numbers in distribution)


class Blind(ToyModel):
    """Of the common tokens none has a finite logit, in some places."""

    places = 2

    def logits(self, tokens: Sequence[int]) -> Logits:
        found = super().logits(tokens).copy()
        if len(tokens) % self.places == 0:
            found[:-1] = -np.inf
        return found


class AlwaysBlind(Blind):
    places = 1


def blind_pair(kind: type[ToyModel]) -> Pair:
    pair = Pair(SMALL, LARGE, seed=3)
    pair.device = kind((*SMALL, b"x"), seed=4, sharpness=1.0)
    pair.common = common_vocabulary(pair.device.vocabulary, pair.cloud.vocabulary)
    assert pair.common.size == len(SMALL)
    return pair


@pytest.mark.core(15)
@pytest.mark.parametrize(
    "sampling", [PLAIN, SamplingParams(temperature=0.0), SamplingParams(temperature=0.8, top_k=2)], ids=str
)
@pytest.mark.parametrize("kind", [Blind, AlwaysBlind])
@pytest.mark.parametrize("name", ["dsd", "tslt", "tslt-tree", "dssd", "xcosd", "xcosd-e", "coupled", "coupled-tree"])
def test_a_device_without_a_finite_logit_costs_acceptance_only(
    name: str, kind: type[ToyModel], sampling: SamplingParams
) -> None:
    pair, method = blind_pair(kind), WITHOUT_DOCUMENTS[name]
    distribution = method_distribution(
        pair, method, method.options_from({**FEW, "draft_length": 1, "expansion": "2"}), sampling, 2
    )
    assert distance(distribution, target_distribution(pair, sampling, 2, rounded(name, pair))) < 1e-12


@pytest.mark.medium
@pytest.mark.parametrize("name", ["u-hlm", "cu-hlm", "gr", "tr"])
def test_the_lossy_ones_go_on_too(name: str) -> None:
    pair, method = blind_pair(AlwaysBlind), WITHOUT_DOCUMENTS[name]
    options = method.options_from({**FEW, "draft_length": 1, "draws": 2})
    assert sum(method_distribution(pair, method, options, PLAIN, 2).values()) == pytest.approx(1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_damaged_model_is_still_one(value: float) -> None:
    """NaN or infinity, or nothing finite at all: no answer is written with that."""

    class Damaged(ToyModel):
        def logits(self, tokens: Sequence[int]) -> Logits:
            return np.full_like(super().logits(tokens), value)

    pair, method = blind_pair(Damaged), WITHOUT_DOCUMENTS["dssd"]
    with pytest.raises(ModelError, match="gave logits that are not finite"):
        method_distribution(pair, method, method.options_from({}), PLAIN, 2)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
@pytest.mark.parametrize("field", ["compute_ms", "rounding"])
def test_a_last_word_with_costs_that_cannot_be_is_no_message(field: str, value: float) -> None:
    costs = {"compute_ms": 1.0, "rounding": 0.0, field: value}
    frame = m.encode(m.Envelope(1, m.Closed("end", 1, costs["compute_ms"], False, costs["rounding"])))
    with pytest.raises(AntiphonError, match="not a valid message"):
        m.decode(frame)


SEEN = m.Probed((0.5, 0.25), (1, 2), (0.5, 0.25), (0.25, 0.5), True, True, 0.125, 0.5, 0.5)


@pytest.mark.parametrize("value", [float("nan"), -0.5])
@pytest.mark.parametrize("field", ["shares", "plain", "again", "shift", "moved", "noise"])
def test_readings_that_cannot_be_are_no_message(field: str, value: float) -> None:
    told = (0.5, value) if field in ("shares", "plain", "again") else value
    with pytest.raises(ProtocolError, match="not a valid message"):
        m.decode(m.encode(m.Envelope(1, replace_fields(SEEN, **{field: told}))))
    assert m.decode(m.encode(m.Envelope(1, replace_fields(SEEN, shift=float("inf"))))).message.shift == float("inf")


@pytest.mark.parametrize("shares", [(), (0.5,), (0.5,) * 3])
def test_readings_of_other_positions_than_were_asked_for_are_refused(shares: tuple[float, ...]) -> None:
    """None of them has no mean."""
    common = Pair(SMALL, LARGE).common
    half = ProbeDevice(DeviceSide(common, Transcript(common.ends, 1), PhiloxChance(0)), Question((1,), (0, 0), 1))
    asking = half.run()
    next(asking)
    asking.send(None)
    with pytest.raises(ProtocolError, match=f"asked about 2 positions and told of {len(shares)}"):
        asking.send(replace_fields(SEEN, shares=shares))


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dssd", "xcosd", "xcosd-e"])
def test_drafts_behind_the_last_token_of_an_answer_are_refused(name: str) -> None:
    """The token that the device drew is the last one, and it comes with drafts."""

    class Behind(WITHOUT_DOCUMENTS[name].device):  # type: ignore[misc,name-defined]
        def _send(self, drafts: Any) -> Send:
            owed = bool(self.owed) and self.side.transcript.finish is not None
            return super()._send(kept if owed else drafts)

        def _committed(self, verdict: Any, drafts: Any) -> Any:
            kept[:] = drafts[:1] or kept
            return super()._committed(verdict, drafts)

    kept: list[Drafted] = []
    refused: set[str] = set()
    for seed in range(120):
        pair, options = Pair(SHARED, SHARED, seed=3), WITHOUT_DOCUMENTS[name].options_from({**FEW, "draft_length": 1})
        device, cloud = pair.sides(4, PLAIN, PhiloxChance(seed))
        try:
            run_pair(Behind(device, options).run(), WITHOUT_DOCUMENTS[name].cloud(cloud, options).run())  # type: ignore[misc]
        except ProtocolError as error:
            refused.add(str(error))
    assert refused == {"at most 0 drafts fit here, but 1 came"}
