"""Clouds that break the protocol of `tslt` and `tslt-tree`: one clear sentence, and the device goes on."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from antiphon.config import Request, SamplingParams
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import ProtocolError, RemoteError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.effects import Finish, Half, Receive, Send
from antiphon.wire import messages as m
from methods.speculative.peers import CHAIN, LONG, RIGHT, SHORT, TOKENS, TREE, common, told, verdict
from support.links import linked, raw_session, request


@dataclass(frozen=True)
class Script:
    """A cloud half that answers one message after the other with these, whatever they are."""

    replies: tuple[Callable[[m.Message], m.Message], ...]

    def __call__(self, side: CloudSide, options: object) -> "Script":
        return self

    def run(self) -> Half:
        for reply in self.replies:
            message = yield Receive()
            yield Send(reply(message))
        yield Receive()
        return Finish.END


def failing(method: str, *replies: m.Message, ending: bool = False, **options: object) -> tuple[str, str]:
    """What a device says of a cloud that answers so: code and sentence. The connection must survive it.

    ending: the device's model is sure that the answer ends here.
    """
    right = WITHOUT_DOCUMENTS[method]
    script = Script(tuple(lambda message, reply=reply: reply for reply in replies))
    wrong = Method("dsd", "", True, right.device, script, options=right.options)
    given = right.options_from({**TREE, **CHAIN, **options})
    bias = ((int(common().cloud_ids[0]), 100.0),) if ending else ()
    sampling = SamplingParams(temperature=1.0, logit_bias=bias)

    async def test(device: Device, connection: Connection) -> tuple[str, str]:
        with pytest.raises(ProtocolError) as caught:
            await device.generate(Request("the ", "dsd", given, sampling, TOKENS, seed=1), connection)
        for name in ("dssd", method):
            assert (await device.generate(request(name), connection)).tokens > 0
        return caught.value.code, str(caught.value)

    return linked(test, methods={**WITHOUT_DOCUMENTS, "dsd": wrong})


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("reply", "expansion", "code", "sentence"),
    [
        (verdict(3, (0, 1), (0, 1), (5, 9)), "2,2", "out-of-range", "3 drafts were accepted, but the tree ends before"),
        (verdict(2**20), "1", "out-of-range", "1048576 drafts were accepted, but the tree ends before"),
        (verdict(1, (3, 2), (5, 9)), "3,1", "out-of-range", "the place of an accepted child is 3, but must be below 3"),
        (verdict(2, (2, 2), (3, 2), (5, 9)), "3,3", "out-of-range", "the place of an accepted child is 3, but must be below 3"),
        (verdict(0, (272, 9)), "2,2", "out-of-range", "the token after the accepted ones is 272, but must be below 272"),
        (
            verdict(2, (1, 1), (1, 1), (300, 9)),
            "2,2",
            "out-of-range",
            "the token after the accepted ones is 300, but must be below 272",
        ),
        (verdict(0), "2,2", "bad-frame", SHORT),
        (verdict(2, (1, 1)), "2,2", "bad-frame", SHORT),
        (verdict(0, (5, 9), (5, 9)), "2,2", "bad-frame", LONG),
        (verdict(0, (5, 9), (1, 1)), "2,2", "bad-frame", LONG),
        (verdict(0, (5, 9), turn=1), "2,2", "out-of-turn", "Verdict of round 1 came in round 0"),
        (m.Tokens(b"\0\0"), "2,2", "out-of-turn", "Tokens came where Verdict was due"),
        (m.Resampling(0, b""), "2,2", "out-of-turn", "Resampling came where Verdict was due"),
    ],
)
def test_an_answer_to_a_tree_that_no_cloud_gives(reply: m.Message, expansion: str, code: str, sentence: str) -> None:
    assert failing("tslt-tree", reply, expansion=expansion, truncate="off") == (code, sentence)


def test_an_accepted_end_has_nothing_behind_it() -> None:
    """Neither a token nor another node; and not even a bit."""
    one_child = {"ending": True, "expansion": "1,1"}
    assert failing("tslt-tree", verdict(1, (5, 9)), **one_child) == ("bad-frame", LONG)
    assert failing("tslt-tree", verdict(1, (1, 1)), **one_child) == ("bad-frame", LONG)
    beyond = "out-of-range", "2 drafts were accepted, but the tree ends before"
    assert failing("tslt-tree", verdict(2, (5, 9)), **one_child) == beyond


def test_an_accepted_end_of_a_chain_has_nothing_behind_it() -> None:
    assert failing("tslt", verdict(1, (5, 9)), ending=True) == ("bad-frame", LONG)
    assert failing("tslt", verdict(2, (5, 9)), ending=True) == ("out-of-range", "2 drafts were accepted, but only 1 were sent")


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("reply", "code", "sentence"),
    [
        (verdict(4, (5, 9)), "out-of-range", "4 drafts were accepted, but only 3 were sent"),
        (verdict(3, (272, 9)), "out-of-range", "the bonus token is 272, but must be below 272"),
        (verdict(0, (300, 9)), "out-of-range", "the correction is 300, but must be below 272"),
        (verdict(0), "bad-frame", SHORT),
        (verdict(0, (5, 9), (5, 9)), "bad-frame", LONG),
        (verdict(0, (5, 9), turn=1), "out-of-turn", "Verdict of round 1 came in round 0"),
    ],
)
def test_an_answer_to_a_chain_that_no_cloud_gives(reply: m.Message, code: str, sentence: str) -> None:
    assert failing("tslt", reply) == (code, sentence)


def test_a_fault_in_a_later_round() -> None:
    """A first round that is right changes nothing."""
    first = verdict(1, (1, 1), (40, 9))
    assert failing("tslt-tree", first, verdict(0, (5, 9))) == ("out-of-turn", "Verdict of round 0 came in round 1")
    third = verdict(3, (0, 9), turn=1)
    assert failing("tslt-tree", first, third) == ("out-of-range", "3 drafts were accepted, but the tree ends before")


@pytest.mark.medium
def test_an_option_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    for options, sentence in [
        ({"expansion": "9,9"}, "a tree may have at most 63 nodes, but 9,9 has 90"),
        ({"expansion": "2,,2"}, "expansion must be numbers from 1 on with commas between, not '2,,2'"),
        ({"truncate": "k=0"}, "truncate must be k=NUMBER from 1 on"),
        ({"draft_precision": 7}, "draft precision must be 8, 16 or 32 bits, not 7"),
        ({"wire": "tight", "draft_precision": 32}, "wire tight needs a draft precision of 8 or 16 bits"),
    ]:
        assert sentence in told("tslt-tree", RIGHT, **options)[1]


def test_a_cloud_that_lacks_the_entropy_coder(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses `tight` with the remedy, and serves the other forms."""
    monkeypatch.setitem(sys.modules, "constriction", None)

    async def test(device: Device, connection: Connection) -> tuple[str, str]:
        session = await raw_session(connection, method="tslt", options={**CHAIN, "wire": "tight"})
        with pytest.raises(RemoteError) as caught:
            await session.receive()
        assert (await device.generate(request("tslt"), connection)).tokens > 0
        return caught.value.code, str(caught.value)

    code, sentence = linked(test)
    assert code == "refused"
    assert sentence.endswith("pip install 'antiphon[tight]'")
