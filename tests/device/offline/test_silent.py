"""A cloud that is silent counts as gone for what is shown, though its link is not given up yet."""

import asyncio
from typing import Any

import pytest

from antiphon.device.answer import Result
from antiphon.methods.effects import Kind
from antiphon.vocabulary import common_vocabulary
from device.offline.losses import Told, result, told
from device.offline.test_settled import WAYS, asked, of_cloud
from device.resume.cuts import TOYS
from support.broken_links import Network


def silent(begins: float, lasts: float) -> Any:
    """A link on which all that is sent in that time comes when it is over."""

    def prepare(network: Network) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()

        def delay() -> float:
            since = loop.time() - started
            return 0.02 + (begins + lasts - since if begins <= since < begins + lasts else 0.0)

        network.delay = delay

    return prepare


def shown(on_loss: str, begins: float = 0.6, lasts: float = 4.0, on_return: str = "verify", **options: Any) -> Told:
    what = asked(on_loss, on_return, tokens=60, options=options)
    return told(what, prepare=silent(begins, lasts))


@pytest.mark.parametrize("patience", [-1.0, 0.0])
def test_what_follows_is_shown_while_the_cloud_is_silent(patience: float) -> None:
    seen = shown("local", patience=patience)
    whole = of_cloud(asked("local", tokens=60))
    assert seen.result is not None
    assert seen.result.token_ids == whole.token_ids
    assert (seen.settled, seen.provisional) == (whole.text, "")
    assert len(seen.line) > 30, "to the end of the answer"
    assert (seen.result.answer.resumed, seen.result.exact) == (0, True)


@pytest.mark.parametrize("lasts", [0.5, 0.8])
def test_a_moment_is_no_silence(lasts: float) -> None:
    assert shown("local", lasts=lasts).most == ""


def test_who_waits_is_shown_nothing() -> None:
    assert shown("wait").most == ""


def test_what_was_written_in_a_silence_is_kept_where_the_link_is_given_up() -> None:
    """Nobody answers any more: what was provisional stands then, if it is to be kept."""

    def prepare(network: Network) -> None:
        silent(0.6, 1000.0)(network)
        asyncio.get_running_loop().call_later(10.0, network.cut)

    seen = told(asked("local", "keep", tokens=60), prepare=prepare)
    assert seen.result is not None
    assert seen.result.answer.kinds[Kind.LOCAL] > 30
    assert seen.settled == seen.result.text
    assert seen.most != ""
    assert seen.result.closed_form is not None
    drafted, common = seen.result.answer.exchanged.drafted, common_vocabulary(*(toy.vocabulary for toy in TOYS))
    assert seen.result.closed_form.up == drafted * common.common_bits > 0, "what was kept was no draft"


def test_lockstep_waits() -> None:
    """It was asked to wait for the cloud without end."""
    assert shown("local", patience=WAYS["lockstep"]["patience"]).most == ""


def test_a_prompt_that_takes_long_to_read_is_no_silence() -> None:
    found: Result = result(asked("local"), costs=(lambda width, length: 0.004, lambda width, length: 3.0))
    assert found.answer.unsettled.written == 0
