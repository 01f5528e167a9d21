"""Every message survives the trip; every other byte string is a ProtocolError."""

import typing
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from antiphon.config import Limits, SamplingParams
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m

TAGS = {
    1: m.Hello,
    2: m.Welcome,
    3: m.VocabularyRequest,
    4: m.VocabularyPart,
    5: m.Common,
    6: m.CommonWanted,
    7: m.CommonMap,
    8: m.CommonReady,
    9: m.Open,
    10: m.Opened,
    11: m.Draft,
    12: m.Verdict,
    13: m.Tokens,
    14: m.Probe,
    15: m.Probed,
    16: m.Cancel,
    17: m.Closed,
    18: m.Failure,
    19: m.Goodbye,
    20: m.Ping,
    21: m.Pong,
    22: m.Retry,
    23: m.Resampling,
    24: m.Retrieved,
    25: m.Passages,
    26: m.Evidence,
    27: m.Ask,
    28: m.Supplement,
    29: m.Realign,
    30: m.Progress,
}
"""Never to be changed: an old peer reads them."""

KINDS = list(TAGS.values())
MIXING = ("Evidence", "Ask", "Supplement", "Realign")
"""Messages with a payload of the methods that mix documents."""
FLOATS = st.floats(allow_nan=False)
COUNTS = st.one_of(st.integers(0, 40), st.integers(0, 2**31))

SAMPLING = st.builds(
    SamplingParams,
    repetition_penalty=st.floats(0.01, 9),
    presence_penalty=st.floats(-9, 9),
    frequency_penalty=st.floats(-9, 9),
    logit_bias=st.lists(st.tuples(st.integers(-(2**63), 2**64 - 1), st.floats(-99, 99)), max_size=3).map(tuple),
    temperature=st.floats(0, 100),
    top_k=st.integers(0, 2**63),
    top_p=st.floats(0.01, 1),
    min_p=st.floats(0, 1),
)
SIZES, SECONDS = st.integers(1024, 2**31), st.floats(0.001, 1e9)
LIMITS = st.builds(Limits, SIZES, SIZES, SIZES, SIZES, SECONDS, SECONDS)


def values_of(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of a field, from its declared type and bounds."""
    match kind:
        case inspect.IntType(ge=least, le=most, lt=below):
            highest = most if most is not None else below - 1 if below is not None else 2**64 - 1
            return st.one_of(st.integers(least or 0, highest), st.sampled_from([least or 0, highest]))
        case inspect.FloatType(ge=least, le=most):
            return FLOATS if least is None else st.floats(least, most)
        case inspect.BoolType():
            return st.booleans()
        case inspect.StrType(max_length=longest):
            return st.text(max_size=min(longest or 40, 40))
        case inspect.BytesType(min_length=shortest, max_length=longest):
            return st.binary(min_size=shortest or 0, max_size=min(longest or 40, 40))
        case inspect.VarTupleType(item_type=item):
            return st.lists(values_of(item), max_size=4).map(tuple)
        case inspect.TupleType(item_types=items):
            return st.tuples(*map(values_of, items))
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values_of(key), values_of(value), max_size=4)
        case inspect.UnionType(types=types):
            return st.one_of(*map(values_of, types))
        case inspect.DataclassType(cls=cls):
            return {SamplingParams: SAMPLING, Limits: LIMITS}[cls]
    raise NotImplementedError(kind)


def fields_of(kind: type) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found.fields


def messages_of(kind: type) -> st.SearchStrategy[m.Message]:
    return st.builds(kind, **{field.name: values_of(field.type) for field in fields_of(kind)})


MESSAGES = st.one_of([messages_of(kind) for kind in KINDS])
ENVELOPES = st.builds(m.Envelope, st.integers(0, 2**31 - 1), MESSAGES)


def sample(kind: type) -> m.Message:
    """One message of a kind, with lengths in the middle of their bounds."""
    made: dict[type, m.Message] = {
        m.Hello: m.Hello(1, "agent", "model", bytes(16)),
        m.Welcome: m.Welcome(1, "agent", "model", bytes(16), 4096, ("dsd", "dssd"), Limits(), "bm25; temperature=8"),
        m.VocabularyPart: m.VocabularyPart(0, 2, b"part"),
        m.Common: m.Common(bytes(16), 265),
        m.CommonMap: m.CommonMap(b"map"),
        m.Open: m.Open(
            "dssd", {"draft_length": 3}, SamplingParams(logit_bias=((1, 2.5),)), "hello", True, 64, 2**64 - 1, (3, 1, 264)
        ),
        m.Opened: m.Opened(7),
        m.Draft: m.Draft(1, 2, b"drafts"),
        m.Verdict: m.Verdict(1, 2, b"token"),
        m.Tokens: m.Tokens(b"token"),
        m.Probe: m.Probe(4, 0, 0, 3, 2, b"tokens"),
        m.Probed: m.Probed((0.5, 0.25), (1, 2), (0.5, 0.25), (0.25, 0.5), True, True, 0.125, 0.5, 0.5),
        m.Closed: m.Closed("end", 5, 12.5, True, 0.0),
        m.Failure: m.Failure("busy", "the cloud is full"),
        m.Goodbye: m.Goodbye("done"),
        m.Ping: m.Ping(b"1234"),
        m.Pong: m.Pong(b"1234"),
        m.Retry: m.Retry(1),
        m.Resampling: m.Resampling(1, b"more"),
        m.Retrieved: m.Retrieved(2, 1.25, 0),
        m.Passages: m.Passages(("a passage", "another")),
        m.Evidence: m.Evidence(1, 4, b"scores"),
        m.Ask: m.Ask(1, 4, b"tokens"),
        m.Supplement: m.Supplement(1, 4, b"scores"),
        m.Realign: m.Realign(2, 4, 3, b"tokens"),
        m.Progress: m.Progress(5),
    }
    return made[kind] if kind in made else kind()


def plain(message: m.Message) -> list[Any]:
    """A message as MessagePack without types: [tag, fields...]."""
    return msgspec.msgpack.decode(m.encode(m.Envelope(3, message)))[1]


def frame_of(body: object, session: object = 3) -> bytes:
    return msgspec.msgpack.encode([session, body])


def refused(frame: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        m.decode(frame)
    assert caught.value.code == "bad-frame"
    return str(caught.value)


def test_the_tags() -> None:
    assert set(typing.get_args(m.Message)) == set(KINDS)
    assert {kind.__struct_config__.tag: kind for kind in KINDS} == TAGS
    for tag, kind in TAGS.items():
        assert plain(sample(kind))[0] == tag


@pytest.mark.parametrize("kind", KINDS)
def test_every_message_is_closed_and_frozen(kind: type) -> None:
    config = kind.__struct_config__
    assert config.array_like
    assert config.frozen
    assert config.forbid_unknown_fields
    assert all(field.required for field in fields_of(kind)), "no default may hide a missing field"


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_the_session_and_the_tagged_fields(kind: type) -> None:
    message = sample(kind)
    frame = m.encode(m.Envelope(3, message))
    assert m.decode(frame) == m.Envelope(3, message)
    session, (tag, *values) = msgspec.msgpack.decode(frame)
    assert (session, TAGS[tag]) == (3, kind)
    assert len(values) == len(fields_of(kind))


@settings(max_examples=120, deadline=None)
@given(ENVELOPES)
def test_what_is_encoded_is_decoded(envelope: m.Envelope) -> None:
    assert m.decode(m.encode(envelope)) == envelope


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=80))
@example(b"")
@example(b"\x91" * 100_000)
@example(b"\x92\x00\xdd\xff\xff\xff\xff")
@example(b"\x92\x00\x92\x13\xa2\xff\xfe")
@example(b"\x92\x00\x92\x0d\xc6\xff\xff\xff\xff")
@example(b"\x92\x00\x91\x03 ")
def test_any_bytes_are_a_message_or_a_protocol_error(frame: bytes) -> None:
    decoded_or_refused(frame)


def decoded_or_refused(frame: bytes) -> None:
    try:
        envelope = m.decode(frame)
    except ProtocolError:
        return
    assert isinstance(envelope, m.Envelope)
    assert type(envelope.message) in KINDS


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    frame = bytearray(m.encode(m.Envelope(draw(st.integers(0, 300)), sample(draw(st.sampled_from(KINDS))))))
    marks = st.one_of(st.integers(0, 255), st.sampled_from([0xC0, 0xC3, 0xC4, 0xC7, 0xCA, 0xCB, 0xD3, 0xDD, 0xDF, 0xFF]))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(frame) - 1))
        match draw(st.integers(0, 2)):
            case 0:
                frame[place] = draw(marks)
            case 1:
                frame.insert(place, draw(marks))
            case _ if len(frame) > 1:
                del frame[place]
    return bytes(frame)


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_a_changed_frame_is_a_message_or_a_protocol_error(frame: bytes) -> None:
    decoded_or_refused(frame)


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_is_refused(kind: type) -> None:
    frame = m.encode(m.Envelope(3, sample(kind)))
    for size in range(len(frame)):
        refused(frame[:size])
    refused(frame + b"\0")


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_too_few_or_too_many(kind: type) -> None:
    body = plain(sample(kind))
    refused(frame_of(body[:-1]))
    refused(frame_of([*body, 0]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_another_type(kind: type) -> None:
    body = plain(sample(kind))
    for place in range(1, len(body)):
        for wrong in (None, [[]], {"a": 1}, msgspec.Raw(b"\xc7\x01\x05\x00")):
            changed = [*body[:place], wrong, *body[place + 1 :]]
            if not (wrong == {"a": 1} and isinstance(body[place], dict)):
                refused(frame_of(changed))


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


PAYLOADS: list[tuple[Callable[[bytes], m.Message], int]] = [
    (lambda payload: m.Draft(0, 1, payload), 8),
    (lambda payload: m.Verdict(0, 1, payload), 8),
    (m.Tokens, 8),
    (lambda payload: m.Resampling(0, payload), 8),
    (lambda payload: m.Evidence(0, 1, payload), 8),
    (lambda payload: m.Ask(0, 1, payload), 8),
    (lambda payload: m.Supplement(0, 1, payload), 8),
    (lambda payload: m.Realign(1, 1, 2, payload), 8),
    (lambda payload: m.Probe(1, 0, 0, 0, 0, payload), 0),
    (m.Ping, 0),
]


@pytest.mark.parametrize(("make", "bits_a_byte"), PAYLOADS)
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_payload_bits(make: Callable[[bytes], m.Message], bits_a_byte: int, size: int) -> None:
    assert m.payload_bits(make(bytes(size))) == bits_a_byte * size


COUNTED = {m.Draft, m.Verdict, m.Resampling, m.Tokens, m.Evidence, m.Ask, m.Supplement, m.Realign}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - COUNTED, key=lambda kind: kind.__name__))
def test_everything_else_is_framing(kind: type) -> None:
    assert m.payload_bits(sample(kind)) == 0
