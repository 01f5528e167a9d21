"""What was written offline is one line of drafts: it is settled in one round trip, and the text is that of `cloud`."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from antiphon.config import Request
from antiphon.core.distributions import Logits
from antiphon.device.answer import Result
from antiphon.errors import LinkError, ProtocolError, UsageError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.effects import Finish, Kind
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.options import NoOptions
from antiphon.wire import messages as m
from device.offline.losses import ENDLESS, result, told
from device.resume.cuts import OTHERS, another, assert_same, frames, written
from support.broken_links import Network, boundaries, verify_cost

WAYS: dict[str, dict[str, Any]] = {"auto": {}, "stream": {"patience": 0.0}, "lockstep": {"patience": math.inf}}
ABLE = [name for name, method in WITHOUT_DOCUMENTS.items() if method.alone is not None]


def asked(on_loss: str = "local", on_return: str = "verify", method: str = "coupled", **more: Any) -> Request:
    options = WITHOUT_DOCUMENTS[method].options_from(more.pop("options", {}))
    heat, tokens = more.pop("temperature", 1.0), more.pop("tokens", 16)
    sampling = replace(ENDLESS, temperature=heat)
    return Request("the ", method, options, sampling, tokens, seed=3, on_loss=on_loss, on_return=on_return, **more)


def of_cloud(what: Request, **link: Any) -> Result:
    return result(replace(what, method="cloud", options=NoOptions(), on_loss="wait", on_return="verify"), **link)


class Parting(ToyModel):
    """The cloud's toy until its context has so many tokens; from there on it likes the others."""

    def __init__(self, tokens: int) -> None:
        super().__init__(toy_pieces(order=1), seed=1, noise=0.5, sharpness=3.0)
        self._tokens = tokens

    def logits(self, tokens: Sequence[int]) -> Logits:
        scores = super().logits(tokens)
        return scores if len(tokens) < self._tokens else np.roll(scores, 1)


@pytest.mark.core(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ABLE)
def test_a_cut_at_every_boundary(method: str, way: str) -> None:
    """Whether the device has written to the end meanwhile, or hardly a word: the very text of `cloud`."""
    what = asked(method=method, options=WAYS[way])
    whole = of_cloud(what)
    provisional = 0
    for number, cut in enumerate(boundaries(frames(written(what)[1]))):
        found = result(what, cut, away=(0.02, 1.0, 0.05)[number % 3])
        assert found.token_ids == whole.token_ids
        assert found.answer.text == whole.answer.text
        provisional += found.answer.unsettled.written
    assert provisional > 50


@pytest.mark.medium
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ABLE)
def test_it_may_be_lost_again_while_it_is_settled(method: str, way: str) -> None:
    models = {"models": lambda: (Parting(40), named_toy("toy-cloud"))}
    what = asked(method=method, tokens=64, options=WAYS[way])
    whole, network = of_cloud(what, **models), told(what, (10, "before"), away=1.0, **models).network
    for second in range(12, frames(network), 5):
        found = result(what, (10, "before"), (second, "before"), away=1.0, **models)
        assert found.token_ids == whole.token_ids


def openings(network: Network) -> list[int]:
    """Where in the log sessions begin."""
    return [at for at, (_, _, envelope) in enumerate(network.log) if isinstance(envelope.message, m.Open)]


def settling(network: Network, prefix: int) -> tuple[int, float]:
    """After the last opening: passes until more than so many tokens are settled, and seconds until the device has the word."""
    opened, tokens, passes = openings(network)[-1], 0, 0
    for time, _, envelope in network.log[opened:]:
        if isinstance(envelope.message, m.Verdict):
            tokens, passes = tokens + envelope.message.accepted + (envelope.message.payload != b""), passes + 1
            if tokens > prefix:
                return passes, time - network.log[opened][0]
    raise AssertionError("it was never settled")


def prefix_of(line: Sequence[int], tokens: Sequence[int]) -> int:
    return next((at for at, (one, other) in enumerate(zip(line, tokens, strict=False)) if one != other), len(line))


@cache
def stood(what: Request) -> int:
    """Tokens that stand when its link is lost, where the device drafts what the cloud writes."""
    link = {"models": lambda: (Parting(10**6), named_toy("toy-cloud")), "delay": lambda: 0.3}
    network = told(what, (14, "before"), away=0.1, **link).network
    return len(network.log[openings(network)[-1]][2].message.committed)


@pytest.mark.core(2)
@pytest.mark.parametrize(("width", "stands"), [(7, 0), (7, 6), (7, 7), (7, 100), (7, 10**6), (29, 100), (29, 10**6)])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("way", WAYS)
def test_two_hundred_tokens_are_settled_in_one_round_trip(way: str, temperature: float, width: int, stands: int) -> None:
    """And in one pass for each 7 tokens, or as many as are asked for, up to the first that is another; then the answer goes on.

    The round trip is long: nothing but the opening and the drafts themselves may be waited for.
    """
    what = asked(tokens=240, temperature=temperature, options={**WAYS[way], "settle_width": width})
    there = named_toy("toy-cloud")
    first = stood(what)
    parts = len(there.tokenize("the ")) + first + stands
    found = told(what, (14, "before"), away=5.0, models=lambda: (Parting(parts), there), delay=lambda: 0.3)
    assert found.result is not None
    whole = of_cloud(replace(what, options=None))
    assert found.result.token_ids == whole.token_ids
    assert len(found.line) >= 200
    prefix = prefix_of(found.line, whole.token_ids[first:])
    assert stands <= prefix <= min(stands + 3, len(found.line)) or prefix == len(found.line)
    passes, seconds = settling(found.network, prefix)
    assert passes == math.ceil((prefix + 1) / width)
    assert seconds <= 0.3 + 0.2 + passes * verify_cost(width, 0), "a way down, the prompt, the passes"


def test_it_is_read_seven_at_a_time_also_where_fewer_would_pay() -> None:
    """On a processor a pass takes as long as it has tokens: drafts that may fall are read few at a time, and these are not."""
    what, there = asked(tokens=100), named_toy("toy-cloud")
    costs = (lambda width, length: 0.004, lambda width, length: 0.01 * width)
    found = told(what, (14, "before"), away=5.0, models=lambda: (Parting(40), there), costs=costs)
    assert found.result is not None
    prefix = prefix_of(found.line, found.result.token_ids[-len(found.line) - 1 :])
    assert prefix > 14
    assert settling(found.network, prefix)[0] == math.ceil((prefix + 1) / 7)


def test_a_line_is_sent_once_and_whole() -> None:
    what = asked(tokens=100)
    found = told(what, (14, "before"), away=5.0, models=lambda: (Parting(10**6), named_toy("toy-cloud")))
    drafts = [one[2].message for one in found.network.log[openings(found.network)[-1] :] if isinstance(one[2].message, m.Draft)]
    assert drafts[0].count == len(found.line) > 64
    assert sum(draft.count for draft in drafts) <= len(found.line) + 1


@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_is_what_would_have_been_provisional(way: str) -> None:
    """The device draws it with the noise that both ends know, whether or not it is to be verified."""
    drafted, kept = (told(asked("local", ways, options=WAYS[way]), (8, "before")) for ways in ("verify", "keep"))
    assert isinstance(drafted.error, LinkError)
    assert kept.result is not None
    assert kept.settled == kept.result.text
    assert kept.settled.startswith(drafted.settled + drafted.provisional)
    assert kept.result.answer.kinds[Kind.LOCAL] == kept.result.kept == len(drafted.line) + 1
    assert (kept.result.finish_reason, kept.result.exact) == (Finish.LENGTH, False)


def test_where_the_cloud_goes_on_behind_what_is_kept_the_text_is_its_own() -> None:
    """Behind the same tokens it writes what it would write: the answer to a session that begins there."""
    what = asked("local", "keep", tokens=40)
    slow = {"costs": (lambda width, length: 0.05, lambda width, length: 0.033)}
    found = result(what, (14, "before"), away=0.02, **slow)
    assert 0 < found.kept < 30
    assert found.answer.kinds.keys() & {Kind.STREAMED, Kind.ACCEPTED, Kind.BONUS, Kind.CORRECTION}
    assert not found.exact


@pytest.mark.parametrize("method", ABLE)
def test_a_cloud_that_comes_back_as_another_is_refused(method: str) -> None:
    for model in OTHERS.values():
        seen = told(asked(method=method), (8, "before"), away=1.0, prepare=another(model))
        assert isinstance(seen.error, ProtocolError)
        assert seen.provisional != ""


@pytest.mark.parametrize("method", ABLE)
def test_stop_strings_and_ends_within_what_was_written(method: str) -> None:
    """Where they stand they end the answer, and only there."""
    soon = replace(ENDLESS, logit_bias=tuple((end, 2.0) for end in named_toy("toy-cloud").vocabulary.ends))
    ended = stopped = 0
    for seed in range(8):
        what = replace(asked(method=method, tokens=40), sampling=soon, seed=seed)
        link = {"models": lambda: (Parting(30), named_toy("toy-cloud"))}
        whole = of_cloud(what, **link)
        found = result(what, (8, "before"), away=1.0, **link)
        assert_same(found, replace(whole, answer=found.answer))
        assert (found.token_ids, found.text) == (whole.token_ids, whole.text)
        ended += found.finish_reason is Finish.END and found.answer.unsettled.written > 0
        stop = (whole.text[8:10] or "never",)
        halted = result(replace(what, stop=stop), (8, "before"), away=1.0, **link)
        assert halted.text == of_cloud(replace(what, stop=stop), **link).text
        stopped += halted.finish_reason is Finish.STOP
    assert ended > 0
    assert stopped > 2


@pytest.mark.parametrize(("width", "fits"), [(1, False), (2, True), (64, True), (65, False)])
def test_how_many_tokens_one_pass_may_settle(width: int, fits: bool) -> None:
    options = {"settle_width": width}
    if fits:
        assert asked(options=options).options.settle_width == width
    else:
        with pytest.raises(UsageError, match=f"settle_width must be 2 to 64 tokens, not {width}"):
            asked(options=options)
