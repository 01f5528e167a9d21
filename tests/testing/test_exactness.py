"""`assert_exact` passes what is exact, and says of anything else what differs."""

import inspect
import re
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

import antiphon.testing
from antiphon.core.distributions import Probs
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.errors import UsageError
from antiphon.methods import BASELINES, METHODS, MIXTURES
from antiphon.methods.base import DeviceHalf, DeviceSide
from antiphon.methods.speculative.options import ChainOptions
from antiphon.testing import assert_exact


@pytest.mark.parametrize("name", ["cloud", "coupled", "dsd", "tslt-tree"])
def test_exact_methods_pass(name: str) -> None:
    assert_exact(METHODS[name])


def test_a_method_that_sends_targets_is_exact_about_those_that_cross() -> None:
    method, options = METHODS["dssd"], METHODS["dssd"].options_from({"draft_length": 1})
    assert_exact(method, options, rounded=lambda common: quantise_ratios(ratios_of(16)))
    with pytest.raises(AssertionError, match="dssd is not exact: with shared vocabularies and plain sampling the answer"):
        assert_exact(method, options)


@pytest.mark.parametrize("name", ["gr", "tr", "u-hlm", "cu-hlm"])
def test_lossy_methods_do_not(name: str) -> None:
    with pytest.raises(AssertionError, match=rf"{name} is not exact: .* in all they are 0\.\d+ apart in total variation"):
        assert_exact(BASELINES[name], cuts=0)


def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def biased(target_probs: Probs, draft_probs: Probs) -> Probs:
        return target_probs

    monkeypatch.setattr("antiphon.methods.speculative.dsd.residual", biased)
    with pytest.raises(AssertionError, match=r"the answer .* has probability 0\.\d+ and not the target's 0\.\d+"):
        assert_exact(METHODS["dsd"], cuts=0)


def test_a_method_that_only_says_that_it_is_coupled_is_seen() -> None:
    with pytest.raises(AssertionError, match="dsd is not coupled: with shared vocabularies and plain sampling and the seed 3"):
        assert_exact(replace(METHODS["dsd"], coupled=True), cuts=0)


def test_a_length_that_is_chosen_anew_after_a_loss_is_seen() -> None:
    """Without losses it is exact: what breaks, and what is drafted then, must not hang together."""
    right = METHODS["dsd"]

    def device(side: DeviceSide, options: ChainOptions) -> DeviceHalf:
        begun = side.transcript.begun = getattr(side.transcript, "begun", 0) + 1
        side.memory.round = side.memory.lengths = None
        return right.device(side, replace(options, draft_length=2 - begun % 2))

    forgetful = replace(right, device=device)
    assert_exact(forgetful, cuts=0)
    with pytest.raises(AssertionError, match="dsd is not exact: with shared vocabularies over links that lose even messages"):
        assert_exact(forgetful, samplings={})


def test_a_method_that_hangs_on_more_than_its_chance_is_seen() -> None:
    right, made = METHODS["dsd"], count()

    def device(side: DeviceSide, options: ChainOptions) -> DeviceHalf:
        return right.device(side, replace(options, draft_length=1 + next(made) % 2))

    with pytest.raises(AssertionError, match=r"dsd cannot be followed: .* must be deterministic but for its chance"):
        assert_exact(replace(right, device=device))


def test_ends_that_hold_different_answers_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from antiphon.methods.base import Transcript

    commit, calls = Transcript.commit, count()
    monkeypatch.setattr(Transcript, "commit", lambda self, number: commit(self, number if next(calls) % 5 else 0))
    with pytest.raises(AssertionError, match="the two ends of cloud hold different answers"):
        assert_exact(METHODS["cloud"])


@pytest.mark.parametrize("method", [METHODS["device"], MIXTURES["concord"], MIXTURES["crcg"]])
def test_where_there_is_nothing_to_prove_it_says_so(method: object) -> None:
    with pytest.raises(UsageError, match="does not write the text of a cloud's model: there is nothing to prove"):
        assert_exact(method)


def test_every_name_is_there_and_says_what_it_is() -> None:
    """A constant or a type says it under its name, in the module that has it."""
    folder = Path(antiphon.testing.__file__).parent
    source = "".join(path.read_text() for path in folder.glob("*.py"))
    for name in antiphon.testing.__all__:
        told = re.search(rf'^{name}\b[^\n]*= (.*\n)+?"""\w', source, re.MULTILINE)
        assert told or inspect.getdoc(getattr(antiphon.testing, name)), name


def test_it_needs_no_test_framework() -> None:
    code = "import antiphon.testing, sys; print([m for m in ('pytest', 'hypothesis', 'asyncio', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
