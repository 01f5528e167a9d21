"""Clouds that do not come back, or come back as another: the device ends the answer alone, or goes on with what is the same."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import LinkError, ProtocolError, RemoteError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.effects import Half
from antiphon.methods.speculative.cloud_only import CLOUD, CloudOnlyCloud
from antiphon.models.toy import ToyModel, named_toy
from device.resume.cuts import OTHERS, TOYS, another, asked, assert_same, gone, refused, written
from support.broken_links import End, Network, broken


@pytest.mark.parametrize("mend_seconds", [0.0, 3.0, 30.0])
def test_a_cloud_that_does_not_come_back(mend_seconds: float) -> None:
    [(error, seconds)] = refused(asked("coupled", tokens=40), prepare=gone, mend_seconds=mend_seconds)
    assert isinstance(error, LinkError)
    assert str(error) == f"the other end closed the link, and it did not come back within {mend_seconds:g} s"
    assert 0.9 * mend_seconds - 2.0 <= seconds <= mend_seconds + 0.1


def test_it_is_not_dialled_all_the_time() -> None:
    dials: list[int] = []

    def noting(network: Network) -> None:
        gone(network)
        dials.append(network.dials)
        plain = network.dial

        async def dial() -> End:
            dials.append(network.dials)
            return await plain()

        network.dial = dial  # type: ignore[method-assign]

    refused(asked("coupled", tokens=40), prepare=noting)
    assert len(dials) <= 25


def test_a_cloud_that_comes_back_late_is_found() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    def away(network: Network) -> None:
        gone(network)
        asyncio.get_running_loop().call_later(20.0, setattr, network, "refuse", False)

    [(result, seconds)] = refused(what, prepare=away)
    assert_same(result, whole)
    assert 18.0 < seconds < 24.0


@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS)
def test_another_model_does_not_go_on_with_the_answer(model: ToyModel) -> None:
    [(error, _)] = refused(asked("coupled", tokens=40), prepare=another(model))
    assert isinstance(error, ProtocolError)
    assert str(error) == f"the cloud serves {model.name} now, so the answer cannot go on: ask again"


def test_the_same_model_in_another_process_goes_on() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)
    [(result, _)] = refused(what, prepare=another(named_toy("toy-cloud")))
    assert_same(result, whole)


def test_who_asks_again_gets_an_answer_of_the_new_model() -> None:
    """As the sentence says; over the same connection."""
    model = OTHERS["another name"]

    async def test(device: Device, connection: Connection, network: Network) -> tuple[int, ...]:
        another(model)(network)
        network.arm((9, "before"))
        with pytest.raises(ProtocolError, match="ask again"):
            await device.generate(asked("coupled", tokens=40), connection)
        return (await device.generate(asked("coupled", tokens=10), connection)).token_ids

    async def fresh(device: Device, connection: Connection, network: Network) -> tuple[int, ...]:
        return (await device.generate(asked("coupled", tokens=10), connection)).token_ids

    assert broken(test) == broken(fresh, models=lambda: (TOYS[0], model))


def test_after_a_failure_to_come_back_a_later_answer_tries_again() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> Result:
        network.arm((9, "before"))
        network.refuse = True
        with pytest.raises(LinkError, match="did not come back within 30 s"):
            await device.generate(what, connection)
        network.refuse = False
        return await device.generate(what, connection)

    assert broken(test).token_ids == whole.token_ids


class Failing(CloudOnlyCloud):
    """A cloud half with a fault that shows whenever it runs."""

    def run(self) -> Half:
        yield from self._side.verifier.prefill()
        raise RuntimeError("a fault of the cloud")


def test_a_cloud_that_fails_at_this_answer_is_not_asked_for_ever() -> None:
    """The answer ends with its sentence, and the link stays."""

    async def test(device: Device, connection: Connection, network: Network) -> int:
        with pytest.raises(RemoteError, match="the cloud failed: its log says why"):
            await device.generate(asked("cloud"), connection)
        return network.dials

    assert broken(test, methods={**WITHOUT_DOCUMENTS, "cloud": replace(CLOUD, cloud=Failing)}) == 1
