"""The bench of a stream in real time: pairs of answers to the same requests, over sockets, and medians of them."""

import json
import sys
from statistics import median

import pytest

from antiphon.config import ModelConfig
from antiphon.errors import UsageError
from antiphon_lab.cli import main
from antiphon_lab.experiments.stream import Plan

TOYS = ("--cloud-model", "toy-cloud", "--model", "toy-device")


def plan_of(**changes: object) -> Plan:
    models = {"cloud_model": ModelConfig("toy-cloud"), "device_model": ModelConfig("toy-device")}
    usual = {"method": "coupled", "links": (None,), "temperatures": (0.0,), "answers": 4, "tokens": 8, "seed": 1}
    return Plan(**{**usual, **models, **changes})  # type: ignore[arg-type]


def test_a_pair_is_the_same_request_but_for_the_method_and_no_two_pairs_are_alike() -> None:
    plan = plan_of()

    def asked(method: str) -> list[tuple[object, ...]]:
        return [(one.prompt, one.seed, one.sampling) for one in (plan.request(method, 0.5, place) for place in range(6))]

    assert asked("cloud") == asked("coupled")
    assert len({(prompt, seed) for prompt, seed, _ in asked("cloud")}) == 6


def test_a_method_that_is_none_is_found_before_models_are_loaded() -> None:
    with pytest.raises(UsageError, match="there is no method 'telepathy'"):
        plan_of(method="telepathy")
    with pytest.raises(UsageError, match="--answers must be at least 1, not 0"):
        plan_of(answers=0)
    with pytest.raises(UsageError, match="device asks no cloud, so it writes another text"):
        plan_of(method="device")


@pytest.mark.medium
def test_the_bench_writes_pairs_over_sockets(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    links = ["--link", "loopback", "--link", "rtt=20ms"]
    sizes = ["--answers", "3", "--tokens", "6", "--temperature", "0.5"]
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", "stream", *TOYS, *links, *sizes, "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["time"], report["answers"], report["method"]) == ("real", 3, "coupled")
    assert [(row["link"], row["temperature"], row["same"]) for row in report["rows"]] == [
        ("loopback", 0.5, 3),
        ("rtt=20ms", 0.5, 3),
    ]
    for row in report["rows"]:
        assert row["faster"] == median(row["ratios"])
        assert 0 < row["passes_per_token"] <= 1
    # An answer of six tokens over a round trip of 20 ms takes longer than that.
    assert report["rows"][1]["cloud_tokens_per_s"] < 6 / 0.02
    assert "coupled beside the plain stream, in real time" in err
    assert err.count("\N{HORIZONTAL ELLIPSIS}") == 0, "no heading is cut off at 80 columns"
