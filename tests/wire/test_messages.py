"""Every message survives the trip; every other byte string is a ProtocolError."""

import typing
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import inspect

from antiphon.config import Limits, SamplingParams
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from support.examples import examples
from wire.message_samples import KINDS, TAGS, fields_of, frame_of, plain, refused, sample

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


def messages_of(kind: type) -> st.SearchStrategy[m.Message]:
    return st.builds(kind, **{field.name: values_of(field.type) for field in fields_of(kind)})


MESSAGES = st.one_of([messages_of(kind) for kind in KINDS])


ENVELOPES = st.builds(m.Envelope, st.integers(0, 2**31 - 1), MESSAGES)


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


@examples(120)
@given(ENVELOPES)
def test_what_is_encoded_is_decoded(envelope: m.Envelope) -> None:
    assert m.decode(m.encode(envelope)) == envelope


@examples(120)
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


@examples(300)
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
