"""Never slower than the stream: toys in virtual time over named links, in one run with `cloud`."""

from dataclasses import replace

import pytest

from antiphon.config import SamplingParams
from antiphon.device.answer import Result
from antiphon.models.base import Model
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link

CLOUD = named_toy("toy-cloud")
DRAFTERS: dict[str, Model] = {
    "right": named_toy("toy-cloud"),
    "like": ToyModel(toy_pieces(order=1), seed=9, noise=0.3, sharpness=3.0),
    "unlike": named_toy("toy-device"),
}
"""One that is right most of the time, one that often is, one that seldom is."""

PROMPTS = ["the ", "a house ", "and then ", "of all "]
ENDLESS = SamplingParams(logit_bias=tuple((end, -1000.0) for end in CLOUD.vocabulary.ends))
TOKENS = 100


def written(method: str, link: str, temperature: float, drafter: str, hardware: str, **options: object) -> list[Result]:
    sampling = replace(ENDLESS, temperature=temperature)
    trial = Trial(method, parse_link(link), parse_compute(hardware), sampling, options, TOKENS)
    return attempt(trial, CLOUD, DRAFTERS[drafter], PROMPTS, 7)


def over_the_stream(link: str, temperature: float, drafter: str, hardware: str = "a100-7b", **options: object) -> float:
    """How many times as fast as `cloud`, which writes the same text."""
    alone = written("cloud", link, temperature, drafter, hardware)
    ours = written("coupled", link, temperature, drafter, hardware, **options)
    assert [one.token_ids for one in ours] == [one.token_ids for one in alone]
    return sum(one.answer.seconds for one in alone) / sum(one.answer.seconds for one in ours)


LINKS = ["rtt=0ms", "lan", "wifi", "5g", "rtt=50ms", "4g", "3g", "satellite"]


@pytest.mark.core(4)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("drafter", ["like", "unlike"])
def test_it_is_not_slower_on_any_link(link: str, temperature: float, drafter: str) -> None:
    assert over_the_stream(link, temperature, drafter) > 0.98


@pytest.mark.core(2)
@pytest.mark.parametrize("objective", ["cloud", "data", "battery"])
@pytest.mark.parametrize("link", ["rtt=0ms", "4g"])
def test_what_data_and_battery_save_costs_no_time_against_the_stream(link: str, objective: str) -> None:
    """Saving the cloud's passes may: it waits for drafts, but never for long."""
    assert over_the_stream(link, 1.0, "like", objective=objective) > (0.4 if objective == "cloud" else 0.98)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_at_hand_it_is_faster_where_drafts_are_mostly_right(temperature: float) -> None:
    assert over_the_stream("rtt=0ms", temperature, "right") > 1.2


def test_a_cloud_that_waits_saves_passes() -> None:
    """What patience buys: fewer passes, for time where the link is long."""
    passes = []
    for patience in (0.0, "lockstep"):
        value = patience if isinstance(patience, float) else float("inf")
        passes.append(sum(one.passes for one in written("coupled", "rtt=50ms", 1.0, "like", "a100-7b", patience=value)))
    assert passes[1] < passes[0]
