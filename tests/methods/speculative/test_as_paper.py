"""`xcosd-e` with `as_paper`: candidates drawn as the paper draws them, seen on the wire. Its probs is in `test_exact`."""

from collections.abc import Sequence

import pytest

from antiphon.config import SamplingParams
from antiphon.models.toy import named_toy
from antiphon.vocabulary import common_vocabulary
from antiphon.wire.candidates import Candidate, CandidateCodec
from antiphon.wire.packing import Reader
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link

CLOUD, DEVICE = named_toy("toy-cloud"), named_toy("toy-device")
COMMON = common_vocabulary(DEVICE.vocabulary, CLOUD.vocabulary)
MESSAGE = 20

Offers = list[tuple[int, Sequence[Candidate]]]


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> Offers:
    """The rejected draft and the candidates of every message that the device reads."""
    found: Offers = []
    read = CandidateCodec.read

    def watched(codec: CandidateCodec, reader: Reader, rejected: int) -> list[Candidate]:
        candidates = read(codec, reader, rejected)
        found.append((rejected, candidates))
        return candidates

    monkeypatch.setattr(CandidateCodec, "read", watched)
    return found


def write(*, as_paper: bool) -> int:
    """Answers with candidates of one message each; the bits that they came to."""
    options = {"draft_length": 2, "candidates": MESSAGE, "as_paper": as_paper}
    trial = Trial("xcosd-e", parse_link("x-cosd"), parse_compute("paper"), SamplingParams(temperature=1.0), options, 40)
    results = attempt(trial, CLOUD, DEVICE, [f"the river {place}" for place in range(12)], 5)
    return sum(result.traffic.down.payload_bits for result in results)


def test_the_rejected_draft_may_come_again_and_all_candidates_cross(offers: Offers) -> None:
    write(as_paper=True)
    assert len(offers) > 30
    assert {len(candidates) for _, candidates in offers} == {MESSAGE}
    assert any(rejected in [one.number for one in candidates] for rejected, candidates in offers)
    outside = [[one.number >= COMMON.size for one in candidates] for _, candidates in offers]
    assert any(any(found[:-1]) for found in outside)


@pytest.mark.medium
def test_ours_leaves_both_out_and_costs_less(offers: Offers) -> None:
    bits = write(as_paper=False)
    assert not any(rejected in [one.number for one in candidates] for rejected, candidates in offers)
    assert not any(one.number >= COMMON.size for _, candidates in offers for one in candidates[:-1])
    assert bits < write(as_paper=True)
