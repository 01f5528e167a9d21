"""Mixtures of real models over real passages: every consulted step is the dense decision, whatever the options (METHODS 4)."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from antiphon.core.distributions import Logits
from antiphon.methods.effects import Kind
from antiphon.models.base import Model
from antiphon_lab.ends.remembering_model import RememberingModel
from methods.mixture.test_mixing import OPTIONS, WAITING
from support.data import DATA
from support.examples import examples
from support.mixtures import End, Shelf, World, answer, dense_answer, question, require_true

pytestmark = [pytest.mark.model, pytest.mark.slow]

PLACES = (0, 7, 23, 31, 40, 52)
"""Questions of the data set."""


class RealReader(RememberingModel):
    """A real model that is asked for the scores after any tokens."""

    def logits(self, tokens: list[int]) -> Logits:
        return self.row(tuple(tokens))


@pytest.fixture(params=["smollm2", "gemma3"])
def reader(request: pytest.FixtureRequest) -> Iterator[RealReader]:
    model: Model = request.getfixturevalue(request.param)
    reader = RealReader(model)
    yield reader
    reader.forget()


def asked() -> list[tuple[str, list[str]]]:
    """Questions, each with the passage that has its answer and others that have not."""
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent: this test needs its questions")
    rows = [
        [json.loads(line) for line in (DATA / f"nq_{name}.jsonl").read_text().splitlines()]
        for name in ("questions", "passages")
    ]
    found = []
    for place in PLACES:
        row = rows[0][place]
        ids = [*row["gold_passages"], *range(100, 105)]
        found.append((row["question"] + "?", [passage["text"] for passage in rows[1] if passage["id"] in ids]))
    return found


def world(reader: RealReader, place: int, clouds: int, masses: tuple[float, ...], link: str) -> tuple[World, str]:
    """A device and clouds with two passages each, weighed as it is said."""
    prompt, texts = asked()[place]
    ends = [
        End(reader, Shelf((texts[2 * end], masses[end]), (texts[2 * end + 1], masses[end] - 1.0)))  # type: ignore[arg-type]
        for end in range(clouds + 1)
    ]
    return World(ends[0], ends[1:], links=[link], draft_s=0.0285, verify_s=0.0285), prompt


CALM = {"phases": (Phase.generate,), "suppress_health_check": list(HealthCheck)}
"""Nothing is shrunk: an example takes a second."""
FAST = "rtt=50ms,up=100Mbit,down=100Mbit,jitter=5ms,handshakes=0"


@examples(12, **CALM)  # type: ignore[arg-type]
@given(st.data())
def test_every_consulted_step_is_dense(reader: RealReader, data: st.DataObject) -> None:
    """Methods, options, temperatures, one or two clouds, weights and links at random."""
    clouds = data.draw(st.integers(1, 2))
    masses = tuple(data.draw(st.sampled_from([-1.0, 0.0, 0.7, 2.0])) for _ in range(clouds + 1))
    link = data.draw(st.sampled_from([FAST, "rtt=300ms,up=1Mbit,down=2Mbit,handshakes=0", "rtt=0ms,handshakes=0"]))
    options: dict[str, Any] = {**data.draw(OPTIONS), **data.draw(WAITING)}
    method = data.draw(st.sampled_from(["concord", "concord", "concord-nosystem", "concord-nocomm", "drdg-tw"]))
    there, prompt = world(reader, data.draw(st.integers(0, 2)), clouds, masses, link)
    request = question(method, prompt=prompt, temperature=data.draw(st.sampled_from([0.0, 0.8])), tokens=8, **options)
    require_true(there, request, answer(there, request))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_always_waits_writes_the_dense_answer(reader: RealReader, temperature: float) -> None:
    """And the device alone, or the cloud's documents alone, would have written another one."""
    kinds: Counter[Kind] = Counter()
    for place in range(len(PLACES)):
        there, prompt = world(reader, place, 1, (0.0, 1.5), FAST)
        request = question("concord-nosystem", prompt=prompt, temperature=temperature, tokens=12)
        told = answer(there, request)
        assert told.numbers == dense_answer(there, request)
        kinds.update(told.kinds)
    assert kinds[Kind.CHANGED] >= 2, kinds
    assert math.isclose(kinds.total(), 72, abs_tol=24), kinds
