"""What `--check` calls a near tie, and what a fault: by the noise that the cloud measured, not by a constant."""

import numpy as np
import pytest

from antiphon.config import ChainOptions
from antiphon.core.distributions import Logits
from antiphon.device.check import Check, check, probe
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.probe import Question
from antiphon.models.toy import ToyContext, named_toy
from links import linked, request


def widen(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the toys logits that depend on the width of a pass, as some real models have."""
    plain = ToyContext.extend

    def extend(self: ToyContext, tokens: list[int], rows: int = 1) -> Logits:
        logits = plain(self, tokens, rows)
        if len(tokens) > 1 and rows:
            signs = np.where(np.arange(logits.shape[1]) % 2 == 0, 1, -1)
            logits = (logits + noise * signs).astype(np.float32)
        return logits

    monkeypatch.setattr(ToyContext, "extend", extend)


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
    from antiphon.device.check import _width

    assert _width(request("dssd", draft_length=5)) == 6
    assert ChainOptions().draft_length + 1 == _width(request("dsd"))
