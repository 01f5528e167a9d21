"""Baselines: a cloud offers them where it is told to, and says how to have them otherwise."""

import pytest

from antiphon.cloud.service import Cloud
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import RemoteError, UsageError
from antiphon.methods import ALL_METHODS, BASELINES, METHODS, MIXTURES, OFFERED
from antiphon.models.toy import named_toy
from support.links import linked, raw_session, request
from support.mixtures import Shelf

LOSSY = ("gr", "tr", "u-hlm", "cu-hlm")
SENTENCE = "is a baseline, which a cloud offers where it was started with `antiphon serve --baselines`"


def offered(**given: object) -> set[str]:
    cloud = Cloud(named_toy("toy-cloud"), library=Shelf(("theirs", 0.0)), **given)  # type: ignore[arg-type]
    try:
        return set(cloud.methods)
    finally:
        cloud.close()


def test_a_cloud_offers_them_only_where_it_is_told_to() -> None:
    assert offered() == {name for name, method in OFFERED.items() if method.cloud} | {"probe"}
    assert offered(methods=ALL_METHODS) - offered() == set(BASELINES)


def test_every_method_stands_in_one_list() -> None:
    lists = (METHODS, MIXTURES, BASELINES)
    assert sorted(ALL_METHODS) == sorted(name for one in lists for name in one)
    assert all(method.exact for name, method in METHODS.items() if name != "device")
    assert all(name == method.name for name, method in ALL_METHODS.items())


@pytest.mark.parametrize("name", LOSSY)
def test_a_device_that_asks_for_one_is_told_of_the_flag(name: str) -> None:
    async def test(device: Device, connection: Connection) -> None:
        device.methods = ALL_METHODS
        assert name not in connection.welcome.methods
        with pytest.raises(UsageError, match=f"{name} {SENTENCE}"):
            await device.generate(request(name), connection)

    linked(test, methods=OFFERED)


def test_a_device_that_asks_all_the_same_is_told_of_the_flag() -> None:
    async def test(device: Device, connection: Connection) -> None:
        session = await raw_session(connection, method="gr")
        with pytest.raises(RemoteError, match=f"gr {SENTENCE}"):
            await session.receive()

    linked(test, methods=OFFERED)


def test_a_cloud_with_baselines_runs_them() -> None:
    async def test(device: Device, connection: Connection) -> None:
        for name in LOSSY:
            assert (await device.generate(request(name), connection)).tokens > 0

    linked(test, methods=ALL_METHODS)
