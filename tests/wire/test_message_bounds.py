"""Every field has its bound: what lies within survives the trip, what lies beyond is refused."""

from dataclasses import asdict

import msgspec
import pytest
from msgspec import inspect

from antiphon.config import Limits, SamplingParams
from antiphon.wire import messages as m
from wire.message_samples import KINDS, fields_of, frame_of, plain, refused, sample

MIXING = ("Evidence", "Ask", "Supplement", "Realign")
"""Messages with a payload of the methods that mix documents."""


def beyond(kind: inspect.Type) -> list[object]:
    """Values just outside the bounds of a field."""
    match kind:
        case inspect.IntType(le=most, lt=below):
            too_much = most + 1 if most is not None else below
            return [-1, -(2**63)] + ([too_much, 2**64 - 1] if too_much is not None else [])
        case inspect.StrType(max_length=int(longest)):
            return ["x" * (longest + 1)]
        case inspect.BytesType(min_length=shortest, max_length=int(longest)):
            return [bytes(longest + 1)] + ([bytes(shortest - 1)] if shortest else [])
        case inspect.VarTupleType(item_type=item, max_length=int(longest)):
            return [(within(item)[:1] or ["x"]) * (longest + 1)] + [[wrong] for wrong in beyond(item)]
        case inspect.DictType(max_length=int(longest), key_type=key):
            return [{str(n): n for n in range(longest + 1)}] + [{wrong: 1} for wrong in beyond(key)]
        case inspect.TupleType(item_types=items):
            return [[1.0] * (len(items) + 1), [1.0] * (len(items) - 1)]
    return []


def within(kind: inspect.Type) -> list[object]:
    """Values just inside them."""
    match kind:
        case inspect.IntType(ge=least, le=most, lt=below):
            return [least or 0, most if most is not None else below - 1 if below is not None else 2**64 - 1]
        case inspect.StrType(max_length=int(longest)):
            return ["", "x" * longest]
        case inspect.BytesType(min_length=shortest, max_length=int(longest)):
            return [bytes(shortest or 0), bytes(longest)]
        case inspect.VarTupleType(item_type=item, max_length=int(longest)):
            return [[], *([value] * longest for value in within(item)[:1]), within(item)]
        case inspect.DictType(max_length=int(longest)):
            return [{}, {str(n): n for n in range(longest)}]
    return []


CASES = [(kind, place, field) for kind in KINDS for place, field in enumerate(fields_of(kind), 1)]


@pytest.mark.parametrize(("kind", "place", "field"), CASES, ids=lambda value: getattr(value, "name", None))
def test_the_bounds_of_every_field(kind: type, place: int, field: inspect.Field) -> None:
    body = plain(sample(kind))

    def changed(value: object) -> bytes:
        return frame_of([*body[:place], value, *body[place + 1 :]])

    for value in beyond(field.type):
        refused(changed(value))
    for value in within(field.type):
        assert plain(m.decode(changed(value)).message)[place] == value


def test_the_only_fields_without_a_bound_of_their_own() -> None:
    """The bound of a frame holds for them, and the cloud's own for a prompt."""
    free = {(kind.__name__, field.name) for kind, _, field in CASES if not beyond(field.type)}
    payloads = {(name, "payload") for name in ("Draft", "Verdict", "Resampling", "Tokens", "Probe", *MIXING)}
    floats = {("Probed", name) for name in ("shares", "shift", "moved", "noise")}
    floats |= {("Closed", "compute_ms"), ("Closed", "rounding")}
    floats |= {("Retrieved", "log_mass")}
    flags = {("Closed", "shared"), ("Open", "chat"), ("Probed", "recorded"), ("Probed", "made")}
    parts = {("Welcome", "limits"), ("Open", "sampling"), ("Open", "prompt")}
    assert free == payloads | floats | flags | parts


@pytest.mark.parametrize("session", [-1, 2**31, 2**64 - 1, None, "1", 1.5])
def test_a_session_number_that_cannot_be(session: object) -> None:
    refused(frame_of([8], session))


@pytest.mark.parametrize("body", [[], [0], [22], [-1], ["Hello"], [None], None, 8, {"8": 1}, [[8]]])
def test_a_message_that_is_none(body: object) -> None:
    refused(frame_of(body))


@pytest.mark.parametrize("envelope", [[], [0], [0, [8], 1], {"session": 0}, 5, "x"])
def test_an_envelope_that_is_none(envelope: object) -> None:
    refused(msgspec.msgpack.encode(envelope))


def test_a_frame_nested_too_deeply() -> None:
    """Also where a reader only skips: in a key of a map that it does not know."""
    deep = msgspec.Raw(b"\x91" * 100_000 + b"\xc0")
    welcome = plain(sample(m.Welcome))
    refused(frame_of([*welcome[:7], {"unknown": deep}, *welcome[8:]]))
    refused(frame_of([*plain(sample(m.Goodbye))[:-1], deep]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"temperature": -1.0}, "temperature must be between 0 and 100, not -1.0"),
        ({"temperature": float("nan")}, "every sampling parameter must be a finite number"),
        ({"top_p": 0.0}, "top-p must be above 0 and at most 1 (off), not 0.0"),
        ({"top_k": -1}, "top-k must be 0 (off) or more, not -1"),
        ({"min_p": 2.0}, "min-p must be between 0 (off) and 1, not 2.0"),
        ({"repetition_penalty": 0.0}, "repetition penalty must be above 0, not 0.0"),
        ({"logit_bias": [[1, float("inf")]]}, "every logit bias must be a finite number"),
        ({"logit_bias": [[1]]}, "Expected `array` of length 2"),
        ({"top_k": 1.5}, "Expected `int`, got `float`"),
    ],
)
def test_sampling_parameters_that_do_not_fit(change: dict[str, object], sentence: str) -> None:
    """What would be the user's error here is the peer's there, with the same sentence."""
    body = plain(sample(m.Open))
    body[3] = {**body[3], **change}
    assert sentence in refused(frame_of(body))


def test_the_parameters_travel_by_name() -> None:
    opening, welcome = plain(sample(m.Open)), plain(sample(m.Welcome))
    assert opening[3] == {**asdict(SamplingParams()), "logit_bias": [[1, 2.5]]}
    assert welcome[7] == asdict(Limits())
