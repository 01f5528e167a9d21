"""Answers go on after a lost link: whatever is cut and wherever, they are complete, and the very same."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Finish
from antiphon.methods.speculative.draft_length import Auto
from antiphon.options import NoOptions
from antiphon.wire import messages as m
from device.resume.cuts import TOYS, asked, assert_cut_anywhere, assert_same, frames, sent, written
from support.broken_links import Cut, Network, boundaries, broken, random_delay
from support.examples import examples
from support.links import request

WITH_CLOUD = [name for name, method in WITHOUT_DOCUMENTS.items() if method.cloud is not None]


RATIO = ["dsd", "tslt", "tslt-tree", "dssd", "xcosd", "xcosd-e"]


HANDSHAKE = 4
"""Frames of a handshake with a cloud that knows the common vocabulary: Hello, Welcome, Common, CommonReady."""


@pytest.mark.core(2)
@pytest.mark.parametrize("name", WITH_CLOUD)
def test_a_cut_at_every_boundary(name: str) -> None:
    """Only where the last token had come already is there nothing left to go on with."""
    resumed = assert_cut_anywhere(asked(name, tokens=8))
    assert set(resumed) == {0, 1}
    assert resumed[1] > 3 * resumed[0]


@pytest.mark.core(2)
@pytest.mark.parametrize("name", WITH_CLOUD)
def test_a_cloud_that_stops_says_goodbye_at_any_time(name: str) -> None:
    """Also while the device drafts, and would send what nobody may send any more."""
    what = asked(name, tokens=8)
    whole, network = written(what)
    for number in range(1, frames(network) + 1):
        assert_same(written(what, (number, "goodbye"))[0], whole)


@pytest.mark.medium
@pytest.mark.parametrize("name", ["coupled", "coupled-tree"])
def test_coupled_answers_stay_those_of_cloud(name: str) -> None:
    """Also with automatic lengths, which another clock would choose otherwise."""
    what = asked(name, seed=2, options={"draft_length": 0})
    network = written(what)[1]
    theirs, _ = written(replace(what, method="cloud", options=NoOptions()))
    for cut in boundaries(frames(network)):
        assert written(what, cut)[0].token_ids == theirs.token_ids


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(temperature=0.0),
        SamplingParams(temperature=0.8, top_p=0.9, repetition_penalty=1.3, presence_penalty=0.3, frequency_penalty=0.1),
    ],
    ids=["greedy", "penalties"],
)
@pytest.mark.parametrize("name", WITH_CLOUD)
def test_a_cut_at_every_boundary_of_longer_answers(name: str, sampling: SamplingParams) -> None:
    assert_cut_anywhere(replace(asked(name, tokens=20, seed=2), sampling=sampling))


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dsd", "dssd", "xcosd", "xcosd-e", "tslt", "gr", "tr"])
def test_with_automatic_lengths_the_answer_is_complete(name: str) -> None:
    """The lengths hang on the clock, so the tokens may be others; at temperature 0 they may not (but for `tr`, a draw)."""
    for heat in (0.0, 1.0):
        what = asked(name, tokens=8, temperature=heat, options={"draft_length": 0, "candidates": 0})
        whole, network = written(what)
        for cut in boundaries(frames(network))[::2]:
            result, _ = written(what, cut)
            assert result.finish_reason == Finish.END or result.tokens == 8
            assert heat > 0 or result.token_ids == whole.token_ids


class Timeless(Auto):
    """Chooses by what the drafts are like and by how rounds went, but not by the clock, which a cut changes."""

    def __init__(self) -> None:
        super().__init__()
        self.fallen = 0

    def more(self, drafts: Sequence[Drafted]) -> bool:
        return len(drafts) < 1 + (self.fallen + int(10 * sum(draft.entropy for draft in drafts))) % 4

    def tested(self, stood: Sequence[Drafted], next: Drafted | None, follows: bool) -> None:
        self.fallen += next is not None and not follows


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dsd", "dssd", "xcosd", "xcosd-e", "tslt", "coupled"])
def test_automatic_lengths_go_on_with_what_they_learned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very text, at every boundary: a round that was cut is done again, and the later ones are as they would have been."""
    monkeypatch.setattr("antiphon.methods.speculative.draft_length.Auto", Timeless)
    for precision in (16, 32) if name in ("dssd", "xcosd", "xcosd-e") else (16,):
        what = asked(name, tokens=10, seed=3, options={"draft_length": 0, "candidates": 0, "precision": precision})
        whole, network = written(what)
        resumed = 0
        for cut in boundaries(frames(network)):
            result, _ = written(what, cut)
            assert_same(result, whole)
            resumed += result.answer.resumed
        assert resumed > 5


@pytest.mark.medium
@pytest.mark.parametrize("name", RATIO)
def test_the_very_text_with_default_options(name: str) -> None:
    """Also where the cloud chooses how many candidates come, and where candidates are dearer than a distribution or not."""
    for seed, options in enumerate(
        [WITHOUT_DOCUMENTS[name].options_from({"draft_length": 3, "precision": bits}) for bits in (16, 32)]
    ):
        what = replace(request(name, tokens=12, seed=seed), options=options)
        whole, network = written(what)
        for cut in boundaries(frames(network)):
            assert_same(written(what, cut)[0], whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [0, 1, 2, 4])
@pytest.mark.parametrize("name", RATIO)
def test_the_very_text_of_more_answers(name: str, length: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.methods.speculative.draft_length.Auto", Timeless)
    given = {"draft_length": length, "candidates": seed % 3, "iterations": 2, "precision": (16, 32)[seed % 2]}
    what = asked(name, tokens=20, seed=seed, options=given)
    whole, network = written(what)
    for cut in boundaries(frames(network)):
        assert_same(written(what, cut)[0], whole)
    for first, second in zip(boundaries(frames(network))[::3], boundaries(2 * frames(network))[::7], strict=False):
        assert_same(written(what, first, second)[0], whole)


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dsd", "tslt", "tslt-tree"])
def test_a_round_without_a_verdict_is_sent_again_bit_by_bit(name: str) -> None:
    """With the real automatic lengths, on a link that has become slower since."""
    what = asked(name, tokens=20, seed=1, options={"draft_length": 0})
    _, network = written(what)
    log = [envelope.message for _, _, envelope in network.log]
    verdicts = [place + 1 for place, message in enumerate(log) if isinstance(message, m.Verdict)]
    assert len(verdicts) > 4
    for place in verdicts:
        slow = iter([0.02] * place + [0.7] * 1000)
        _, network = written(what, (place, "before"), delay=lambda slow=slow: next(slow))
        before, after = sent(network)
        assert (before[-1].count, before[-1].payload) == (after[0].count, after[0].payload)


def test_a_device_without_a_model_goes_on_too() -> None:
    what = asked("cloud")

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, Result]:
        bare = Device(None, worker=device.worker)
        other = Connection(network.dial, None, device.worker)
        await other.establish()
        whole = await bare.generate(what, other)
        network.arm((6, "before"))
        result = await bare.generate(what, other)
        await other.close()
        return result, whole

    result, whole = broken(test)
    assert_same(result, whole)
    assert result.answer.resumed == 1


@pytest.mark.core(3)
@pytest.mark.parametrize("name", ["cloud", "coupled", "coupled-tree", "dssd", "xcosd-e", "u-hlm"])
@pytest.mark.parametrize("every", [HANDSHAKE + 13, HANDSHAKE + 20])
def test_cuts_again_and_again(name: str, every: int) -> None:
    """Each time there is time for a round or two; the answer does not end before."""
    endless = SamplingParams(temperature=1.0, logit_bias=((TOYS[1].vocabulary.end, -1000.0),))
    what = replace(asked(name, tokens=40), sampling=endless)
    whole, _ = written(what)
    result, network = written(what, *((place, "before") for place in range(every, 1000, every)))
    assert_same(result, whole)
    assert result.answer.resumed >= 2
    assert network.dials == 1 + result.answer.resumed


@pytest.mark.core(6)
@pytest.mark.parametrize("later", range(1, HANDSHAKE + 3))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_cut_while_the_connection_is_made_anew(later: int, when: str) -> None:
    """In its handshake it is dialled once more, and the answer counts one loss; from `Open` on it counts two."""
    what = asked("coupled", tokens=16)
    whole, _ = written(what)
    result, network = written(what, (6, "before"), (6 + later, when))
    assert_same(result, whole)
    assert network.dials == 3
    assert result.answer.resumed == (1 if later < HANDSHAKE or (later, when) == (HANDSHAKE, "before") else 2)


@pytest.mark.medium
@examples(40)
@given(
    name=st.sampled_from(WITH_CLOUD),
    cuts=st.lists(st.tuples(st.integers(1, 60), st.sampled_from(["before", "after"])), max_size=6),
    seed=st.integers(0, 1000),
    tokens=st.integers(1, 24),
    delay=st.tuples(st.integers(0, 1000), st.sampled_from([0.0, 0.01, 0.2])),
)
def test_any_cuts_on_any_link(name: str, cuts: list[Cut], seed: int, tokens: int, delay: tuple[int, float]) -> None:
    what = asked(name, tokens=tokens, seed=seed)
    whole, _ = written(what)
    result, _ = written(what, *cuts, delay=random_delay(*delay))
    assert_same(result, whole)
