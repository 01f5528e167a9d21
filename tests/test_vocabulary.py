"""The bytes of tokens, and the numbers that both ends call them by."""

import tracemalloc
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antiphon import vocabulary as module
from antiphon.errors import ProtocolError
from antiphon.models.toy import toy_pieces, toy_vocabulary
from antiphon.vocabulary import (
    CommonVocabulary,
    TokenKind,
    Vocabulary,
    bits_for,
    common_vocabulary,
    from_members,
    identity,
)
from support.examples import examples

NORMAL, BYTE, CONTROL, UNUSED = TokenKind


def made(tokens: Sequence[tuple[bytes, TokenKind]], end: int, ends: Sequence[int] | None = None) -> Vocabulary:
    """A vocabulary whose canonical token of some bytes is its first normal one, else its first byte token."""
    best: dict[bytes, int] = {}
    for kind in (NORMAL, BYTE):
        for token, (piece, own) in enumerate(tokens):
            if own is kind and piece:
                best.setdefault(piece, token)
    canonical = np.isin(np.arange(len(tokens)), list(best.values()))
    pieces = tuple(piece if kind in (NORMAL, BYTE) else b"" for piece, kind in tokens)
    kinds = np.array([kind for _, kind in tokens], dtype=np.uint8)
    return Vocabulary(pieces, kinds, canonical, end, tuple(ends or (end,)))


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Duplicates, byte tokens, control and unused tokens, and one or two ends."""
    piece = st.one_of(st.text("ab é", min_size=1, max_size=3).map(str.encode), st.binary(min_size=1, max_size=2))
    normal = st.tuples(piece, st.just(NORMAL))
    byte = st.tuples(st.binary(min_size=1, max_size=1), st.just(BYTE))
    empty = st.tuples(st.just(b""), st.sampled_from([CONTROL, UNUSED]))
    tokens = draw(st.lists(st.one_of(normal, normal, byte, empty), max_size=25))
    tokens.insert(draw(st.integers(0, len(tokens))), (b"", CONTROL))
    controls = [token for token, (_, kind) in enumerate(tokens) if kind is CONTROL]
    end = draw(st.sampled_from(controls))
    more = draw(st.lists(st.sampled_from(controls), max_size=2))
    return made(tokens, end, sorted({end, *more}))


def same(first: Vocabulary, second: Vocabulary) -> bool:
    arrays = np.array_equal(first.kinds, second.kinds) and np.array_equal(first.canonical, second.canonical)
    return arrays and (first.pieces, first.end, first.ends) == (second.pieces, second.end, second.ends)


SMALL = made([(b"a", NORMAL), (b"b", NORMAL), (b"", CONTROL), (b"ab", NORMAL)], end=2)


# Packing


@examples(50)
@given(vocabularies())
def test_unpacking_gives_back_what_was_packed(vocabulary: Vocabulary) -> None:
    again = Vocabulary.unpack(vocabulary.pack())
    assert same(again, vocabulary)
    assert again.fingerprint == vocabulary.fingerprint
    assert again.canonical.dtype == bool


def test_a_long_piece_and_a_thousand_tokens() -> None:
    pieces = [bytes([n % 251]) * (n % 90 + 1) + n.to_bytes(2, "little") for n in range(1000)] + [b"x" * 65535]
    vocabulary = made([*((piece, NORMAL) for piece in pieces), (b"", CONTROL)], end=1001)
    assert same(Vocabulary.unpack(vocabulary.pack()), vocabulary)


def test_the_layout() -> None:
    """As docs/protocol.md says: head, ends, sizes, kinds, canonical bits, bytes."""
    vocabulary = made([(b"a", NORMAL), (b"", CONTROL), (b"bcd", NORMAL), (b"", UNUSED), (b"a", BYTE)], end=1, ends=(1, 3))
    raw = zlib.decompress(vocabulary.pack())
    head = b"\5\0\0\0" + b"\1\0\0\0" + b"\2\0\0\0" + b"\1\0\0\0" + b"\3\0\0\0"
    assert raw == head + b"\1\0\0\0\3\0\0\0\1\0" + b"\0\2\0\3\1" + bytes([0b10100000]) + b"abcda"


def test_the_fingerprint_is_stable_and_sees_everything() -> None:
    names = {SMALL.fingerprint}
    names.add(replace(SMALL, pieces=(b"a", b"b", b"", b"ba")).fingerprint)
    names.add(replace(SMALL, kinds=np.array([0, 0, 2, 1], dtype=np.uint8)).fingerprint)
    names.add(replace(SMALL, canonical=np.array([True, True, False, False])).fingerprint)
    names.add(replace(SMALL, end=0).fingerprint)
    names.add(replace(SMALL, ends=(1, 2)).fingerprint)
    assert len(names) == 6
    assert SMALL.fingerprint.hex() == "6556f7bb31751bc797675f4bfdf66a9c"


@examples(25)
@given(vocabularies(), st.data())
def test_truncations_are_malformed(vocabulary: Vocabulary, data: st.DataObject) -> None:
    packed = vocabulary.pack()
    raw = zlib.decompress(packed)
    for cut in (packed[: data.draw(st.integers(0, len(packed) - 1))], zlib.compress(raw[:-1]), zlib.compress(raw + b"x")):
        with pytest.raises(ProtocolError) as caught:
            Vocabulary.unpack(cut)
        assert caught.value.code == "bad-vocabulary"


def test_every_truncation_of_one() -> None:
    packed = SMALL.pack()
    raw = zlib.decompress(packed)
    for wrong in [packed[:size] for size in range(len(packed))] + [zlib.compress(raw[:size]) for size in range(len(raw))]:
        with pytest.raises(ProtocolError, match="the vocabulary is malformed"):
            Vocabulary.unpack(wrong)


def test_what_follows_the_compressed_stream_is_refused() -> None:
    with pytest.raises(ProtocolError, match="followed by something else"):
        Vocabulary.unpack(SMALL.pack() + b"\0")


@examples(60)
@given(st.binary(max_size=60), st.booleans())
def test_random_bytes_are_malformed(data: bytes, compressed: bool) -> None:
    with pytest.raises(ProtocolError):
        Vocabulary.unpack(zlib.compress(data) if compressed else data)


@examples(80)
@given(vocabularies(), st.data())
def test_a_changed_byte_is_malformed_or_another_vocabulary(vocabulary: Vocabulary, data: st.DataObject) -> None:
    raw = bytearray(zlib.decompress(vocabulary.pack()))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    try:
        other = Vocabulary.unpack(zlib.compress(bytes(raw)))
    except ProtocolError:
        return
    assert not same(other, vocabulary) or other.fingerprint == vocabulary.fingerprint
    assert all(0 <= token < len(other) for token in (other.end, *other.ends))
    assert len(other.kinds) == len(other.canonical) == len(other)


def head(count: int, end: int, ends: int) -> bytes:
    return zlib.compress(b"".join(value.to_bytes(4, "little", signed=True) for value in (count, end, ends)) + bytes(100))


@pytest.mark.parametrize(
    ("count", "end", "ends"),
    [(0, 0, 0), (-1, 0, 1), (2**31 - 1, 0, 1), (module.MAX_TOKENS + 1, 0, 1), (5, 0, -1), (5, 0, 6), (5, 5, 1), (5, -1, 1)],
)
def test_a_head_that_claims_too_much(count: int, end: int, ends: int) -> None:
    with pytest.raises(ProtocolError):
        Vocabulary.unpack(head(count, end, ends))


def peak_bytes_of(refused: bytes) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="too large"):
            Vocabulary.unpack(refused)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_decompression_bomb_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 2**20)
    assert peak_bytes_of(zlib.compress(bytes(16 * 2**20))) < 4 * 2**20


def test_a_bomb_of_a_map_is_bounded() -> None:
    bomb = zlib.compress(bytes(16 * 2**20))
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="the map of common tokens is malformed"):
        from_members(SMALL, bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_single_bytes_and_join() -> None:
    vocabulary = made([(b"ab", NORMAL), (b"a", BYTE), (b"a", NORMAL), (b"\xff", BYTE), (b"", CONTROL)], end=4)
    assert vocabulary.single_bytes == {ord("a"): 2, 0xFF: 3}
    assert vocabulary.join([0, 3, 4, 1]) == b"ab\xffa"


# The common vocabulary


@pytest.mark.parametrize(("count", "bits"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (256, 8), (257, 9), (262_144, 18)])
def test_bits(count: int, bits: int) -> None:
    assert bits_for(count) == bits


def canonical_pieces(vocabulary: Vocabulary) -> dict[bytes, int]:
    return {vocabulary.pieces[token]: token for token in np.flatnonzero(vocabulary.canonical).tolist()}


@examples(60)
@given(vocabularies(), vocabularies())
def test_the_common_vocabulary_by_its_definition(device: Vocabulary, cloud: Vocabulary) -> None:
    assume(device.fingerprint != cloud.fingerprint)
    own, theirs = canonical_pieces(device), canonical_pieces(cloud)
    shared = sorted(own.keys() & theirs.keys())
    common = common_vocabulary(device, cloud)
    assert common.device_ids is not None
    assert common.size == len(shared) + 1
    assert common.cloud_ids[: common.size].tolist() == [cloud.end, *(theirs[piece] for piece in shared)]
    assert common.device_ids.tolist() == [device.end, *(own[piece] for piece in shared)]
    assert common.cloud_ids[common.size :].tolist() == sorted(set(range(len(cloud))) - {cloud.end, *map(theirs.get, shared)})
    assert common.pieces == tuple(cloud.pieces[token] for token in common.cloud_ids.tolist())
    assert {int(common.cloud_ids[number]) for number in common.ends} == set(cloud.ends)
    assert (common.target_size, common.common_bits) == (len(cloud), bits_for(common.size))
    assert common.target_bits == bits_for(len(cloud))


@examples(40)
@given(vocabularies(), vocabularies())
def test_numbers_are_the_inverse_of_ids(device: Vocabulary, cloud: Vocabulary) -> None:
    common = common_vocabulary(device, cloud)
    everything = np.arange(len(cloud))
    assert np.array_equal(common.numbers[common.cloud_ids], everything)
    assert np.array_equal(common.cloud_ids[common.numbers], everything)
    assert np.array_equal(common.numbered(everything / 7), everything[common.cloud_ids] / 7)
    assert common.is_identity == np.array_equal(common.cloud_ids, everything)


@examples(50)
@given(vocabularies(), vocabularies())
def test_the_cloud_builds_the_same_numbers_from_the_map(device: Vocabulary, cloud: Vocabulary) -> None:
    assume(device.fingerprint != cloud.fingerprint)
    mine = common_vocabulary(device, cloud)
    theirs = from_members(cloud, mine.members())
    assert theirs.digest == mine.digest
    assert np.array_equal(theirs.cloud_ids, mine.cloud_ids)
    assert (theirs.size, theirs.pieces, theirs.ends, theirs.device_ids) == (mine.size, mine.pieces, mine.ends, None)


@examples(25)
@given(vocabularies())
def test_equal_lists_give_the_identity(vocabulary: Vocabulary) -> None:
    """The whole vocabulary: control tokens, unused ones and duplicates too."""
    again = Vocabulary.unpack(vocabulary.pack())
    common = common_vocabulary(again, vocabulary)
    assert common.is_identity
    assert common.size == common.target_size == len(vocabulary)
    assert common.device_ids is not None
    assert common.device_ids.tolist() == common.cloud_ids.tolist() == list(range(len(vocabulary)))
    assert common.ends == frozenset(vocabulary.ends)
    assert common.digest == identity(vocabulary).digest == vocabulary.fingerprint


def small_pair() -> tuple[Vocabulary, Vocabulary, CommonVocabulary]:
    device = made([(b"b", NORMAL), (b"z", NORMAL), (b"", CONTROL), (b"a", BYTE), (b"a", NORMAL), (b"abc", NORMAL)], end=2)
    cloud = made(
        [(b"a", NORMAL), (b"a", NORMAL), (b"abc", UNUSED), (b"ab", NORMAL), (b"", CONTROL), (b"b", BYTE), (b"", CONTROL)],
        end=6,
        ends=(4, 6),
    )
    return device, cloud, common_vocabulary(device, cloud)


def test_duplicates_meet_at_their_canonical_tokens() -> None:
    """`a` has two tokens on each side, `b` is a byte token on one; an unused token and a second end are never common."""
    _, cloud, common = small_pair()
    assert common.size == 3
    assert common.cloud_ids.tolist() == [6, 0, 5, 1, 2, 3, 4]
    assert common.device_ids is not None
    assert common.device_ids.tolist() == [2, 4, 0]
    assert common.ends == {0, 6}
    assert common.pieces == (b"", b"a", b"b", b"a", b"", b"ab", b"")
    assert (common.common_bits, common.target_bits) == (2, 3)
    assert zlib.decompress(common.members()) == bytes([0b10000110])
    assert not common.is_identity
    assert common.digest != identity(cloud).digest


def test_the_digest_is_stable() -> None:
    assert small_pair()[2].digest.hex() == "3eb1ed93a635407b85a5af24e80fc7fe"


def test_the_digest_tells_different_maps_apart() -> None:
    cloud = toy_vocabulary(toy_pieces(order=1))
    digests = {from_members(cloud, members_of(cloud, {cloud.end, token})).digest for token in range(len(cloud))}
    assert len(digests) == len(cloud)


def members_of(cloud: Vocabulary, tokens: set[int]) -> bytes:
    return zlib.compress(np.packbits(np.isin(np.arange(len(cloud)), list(tokens))).tobytes())


def test_maps_that_cannot_be() -> None:
    _, cloud, common = small_pair()
    good = {6, 0, 5}
    assert from_members(cloud, members_of(cloud, good)).digest == common.digest
    # A second end, an unused token, a duplicate; no end.
    for tokens in (good | {4}, good | {2}, good | {1}, {0, 5}, set()):
        with pytest.raises(ProtocolError, match="the map of common tokens does not fit") as caught:
            from_members(cloud, members_of(cloud, tokens))
        assert caught.value.code == "bad-vocabulary"


@pytest.mark.parametrize("raw", [b"", bytes([0b10000110, 0]), bytes([0b10000110, 0, 0])])
def test_maps_of_another_size(raw: bytes) -> None:
    _, cloud, _ = small_pair()
    with pytest.raises(ProtocolError, match="the map of common tokens"):
        from_members(cloud, zlib.compress(raw))


def test_a_map_with_bits_beyond_the_vocabulary() -> None:
    _, cloud, _ = small_pair()
    with pytest.raises(ProtocolError, match="the map of common tokens does not fit"):
        from_members(cloud, zlib.compress(bytes([0b10000111])))


@examples(60)
@given(st.binary(max_size=12), st.booleans())
def test_random_maps(data: bytes, compressed: bool) -> None:
    _, cloud, _ = small_pair()
    try:
        common = from_members(cloud, zlib.compress(data) if compressed else data)
    except ProtocolError:
        return
    assert data[0] & 0b10
    assert common.size == data[0].bit_count()


def test_every_truncation_of_a_map() -> None:
    _, cloud, common = small_pair()
    members = common.members()
    for size in range(len(members)):
        with pytest.raises(ProtocolError):
            from_members(cloud, members[:size])
    with pytest.raises(ProtocolError):
        from_members(cloud, members + b"x")
