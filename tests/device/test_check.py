"""What `--check` calls a near tie, and what a fault: by the noise that the cloud measured, not by a constant."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from antiphon.config import ChainOptions, NoOptions, Request, TreeOptions, UncertaintyOptions, most_drafts
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.device.check import Check, check, probe
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import METHODS
from antiphon.methods.base import CloudHalf, CloudSide
from antiphon.methods.probe import Question
from antiphon.models.toy import ToyContext, named_toy
from antiphon.wire.messages import Probed
from links import linked, request


def widen(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the toys logits that depend on the width of a pass, as some real models have."""
    plain, tree = ToyContext.extend, ToyContext.grow

    def moved(logits: Logits, width: int) -> Logits:
        if width < 2 or not len(logits):
            return logits
        signs = np.where(np.arange(logits.shape[1]) % 2 == 0, 1, -1)
        return (logits + noise * signs).astype(np.float32)

    def extend(self: ToyContext, tokens: list[int], rows: int = 1) -> Logits:
        return moved(plain(self, tokens, rows), len(tokens))

    def grow(self: ToyContext, tokens: list[int], parents: list[int]) -> Logits:
        return moved(tree(self, tokens, parents), len(tokens))

    monkeypatch.setattr(ToyContext, "extend", extend)
    monkeypatch.setattr(ToyContext, "grow", grow)


def checked(noise: float, seeds: range, monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    widen(noise, monkeypatch)

    async def test(device: Device, connection: Connection) -> list[Check]:
        found = []
        for seed in seeds:
            asked = request("dssd", temperature=0, tokens=30, prompt=f"{seed} the ", draft_length=4)
            result = await device.generate(asked, connection)
            found.append(await check(device, asked, result, connection))
        return found

    return linked(test)


def test_a_near_tie_is_told_from_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [one for one in checked(0.2, range(12), monkeypatch) if not one.equal]
    assert found, "the noise must flip a token somewhere, or this test shows nothing"
    for one in found:
        assert one.near_tie is True
        assert one.noise == pytest.approx(0.2, abs=1e-3)
        assert one.gap is not None
        assert one.gap <= 2 * 0.2 + 1e-3
        assert one.narrow_logits is not None
        assert "near tie within measured noise" in one.sentence()


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("method", ["coupled", "coupled-tree"])
def test_coupled_drafting_is_checked_at_any_temperature(
    method: str, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where noise moves the logits a race can end another way, and the check says that it was close."""
    widen(0.2, monkeypatch)

    async def test(device: Device, connection: Connection) -> list[Check]:
        found = []
        for seed in range(12):
            asked = request(method, temperature=temperature, tokens=30, prompt=f"{seed} the ", seed=seed)
            result = await device.generate(asked, connection)
            found.append(await check(device, asked, result, connection))
        return found

    different = [one for one in linked(test) if not one.equal]
    assert different, "the noise must flip a token somewhere, or this test shows nothing"
    assert all(one.near_tie for one in different)


@pytest.mark.parametrize("method", ["coupled", "coupled-tree"])
def test_a_fault_of_coupled_drafting_is_seen(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloud that draws its own noise."""
    half: Any = METHODS[method].cloud
    plain = half.__init__

    def with_own_noise(self: CloudHalf, side: CloudSide, options: object) -> None:
        plain(self, replace(side, chance=PhiloxChance(99)), options)

    monkeypatch.setattr(half, "__init__", with_own_noise)

    async def test(device: Device, connection: Connection) -> None:
        asked = request(method, temperature=1.0, tokens=30)
        found = await check(device, asked, await device.generate(asked, connection), connection)
        assert not found.equal
        assert found.near_tie is False

    linked(test)


def test_no_noise_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(one.equal for one in checked(0.0, range(3), monkeypatch))


def test_the_probe_sees_what_the_model_says() -> None:
    async def test(device: Device, connection: Connection) -> None:
        asked = request("dssd", temperature=0, tokens=10)
        result = await device.generate(asked, connection)
        numbers = tuple(result.answer.numbers[:5])
        seen = await probe(connection, asked, Question(numbers, (3, 4), 4))
        assert seen.noise == 0
        model = named_toy("toy-cloud")
        ids = connection.common.cloud_ids
        row = model.logits([*model.tokenize(asked.prompt), *ids[list(numbers)].tolist()])
        assert seen.narrow == seen.wide == (float(row[ids[3]]), float(row[ids[4]]))
        assert len(seen.shares) == len(numbers) + 1
        assert all(0 < share <= 1 for share in seen.shares)

    linked(test)


def test_a_short_continuation_is_read_another_way_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference right after the prompt: only reading the prompt's end again can show what other histories do."""
    widen(0.2, monkeypatch)

    async def test(device: Device, connection: Connection) -> list[float]:
        asked = request("dssd", temperature=0, tokens=10, prompt="the thing and the other ")
        return [(await probe(connection, asked, Question((), (3, 4), 16, reread))).noise for reread in (0, 8, 64)]

    assert linked(test) == [0, pytest.approx(0.2, abs=1e-3), pytest.approx(0.2, abs=1e-3)]


def test_the_width_that_is_probed_is_that_of_the_method() -> None:
    assert most_drafts(request("dssd", draft_length=5).options) == 5
    assert most_drafts(ChainOptions()) == ChainOptions().draft_length
    assert most_drafts(TreeOptions(expansion="4,2,1")) == 4 + 8 + 8
    assert most_drafts(UncertaintyOptions()) == 1
    assert most_drafts(NoOptions()) == 0


def test_a_tree_with_options_of_its_own_accord_is_read_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees leave gaps between cells; a request that names no options has a tree all the same."""
    asked_for: list[Question] = []

    async def watched(connection: Connection, asked: Request, question: Question) -> Probed:
        asked_for.append(question)
        return await probe(connection, asked, question)

    monkeypatch.setattr("antiphon.device.check.probe", watched)
    widen(0.2, monkeypatch)

    async def test(device: Device, connection: Connection) -> None:
        for seed in range(12):
            asked = replace(request("coupled-tree", temperature=1.0, tokens=30, seed=seed), options=None)
            await check(device, asked, await device.generate(asked, connection), connection)

    linked(test)
    assert asked_for
    assert all(question.reread > 0 and question.width >= 16 for question in asked_for)
