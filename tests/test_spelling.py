"""Bytes as the cloud's tokenizer is likely to spell them, from its tokens alone."""

import time
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from antiphon.models.toy import toy_pieces, toy_vocabulary
from antiphon.vocabulary import CommonVocabulary, common_vocabulary
from support.examples import examples


def common_of(cloud: Sequence[bytes], device: Sequence[bytes] = (b"a", b"")) -> CommonVocabulary:
    """What toys with these tokens have in common."""
    return common_vocabulary(toy_vocabulary(device), toy_vocabulary(cloud))


def pieces(common: CommonVocabulary, data: bytes) -> list[bytes]:
    """How the bytes are spelled."""
    return [common.pieces[number] for number in common.spell(data)]


@examples(100)
@given(st.binary(max_size=200) | st.text("the \n", max_size=200).map(str.encode))
def test_every_byte_is_spelled_where_there_are_tokens_for_it(data: bytes) -> None:
    assert b"".join(pieces(common_of(toy_pieces(order=3), toy_pieces(order=4)), data)) == data


def test_the_lowest_id_is_merged_first() -> None:
    bytes_first = (b"", b"a", b"b", b"c")
    assert pieces(common_of([*bytes_first, b"ab", b"bc"]), b"abc") == [b"ab", b"c"]
    assert pieces(common_of([*bytes_first, b"bc", b"ab"]), b"abc") == [b"a", b"bc"]
    assert pieces(common_of([*bytes_first, b"bc", b"abc"]), b"abc") == [b"abc"]
    assert pieces(common_of([*bytes_first, b"aa"]), b"aaaaa") == [b"aa", b"aa", b"a"], "the leftmost first"
    assert pieces(common_of([*bytes_first, b"abc"]), b"abc") == [b"a", b"b", b"c"], "it is merged of two"


def test_a_byte_without_a_token_is_left_out() -> None:
    assert pieces(common_of([b"", b"a", b"b"]), b"axb") == [b"a", b"b"]


def test_of_the_same_bytes_the_common_token_is_meant() -> None:
    device, cloud = toy_vocabulary([b"a", b""]), toy_vocabulary([b"", b"a", b"a", b"b"])
    cloud.canonical[1] = False
    common = common_vocabulary(device, cloud)
    assert common.cloud_ids[common.spell(b"ab")].tolist() == [2, 3]
    assert common.spell(b"a")[0] < common.size


def test_a_word_without_an_end_is_cut() -> None:
    common = common_of(toy_pieces(), toy_pieces(order=1))
    started = time.monotonic()
    assert len(common.spell(b"the" * 30_000)) >= 30_000
    assert common.spell(np.random.default_rng(0).bytes(100_000))
    assert time.monotonic() - started < 20
