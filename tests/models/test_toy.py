"""The toys: what they promise beside the contract (`test_contract.py`)."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.distributions import process, total_variation
from antiphon.errors import ModelError
from antiphon.models.base import spell
from antiphon.models.toy import MERGES, ToyModel, named_toy, toy_pieces, toy_vocabulary

NAMES = ("toy-cloud", "toy-device")


@pytest.mark.parametrize("name", NAMES)
def test_a_named_toy_has_every_byte_and_one_end(name: str) -> None:
    model = named_toy(name)
    assert model.name == name
    assert sorted(model.vocabulary.single_bytes) == list(range(256))
    assert model.vocabulary.ends == (model.vocabulary.end,)
    assert model.vocabulary.pieces[model.vocabulary.end] == b""
    assert (model.begin, model.chat_template) == ((), None)


def test_the_two_named_toys_number_and_merge_differently() -> None:
    cloud, device = (named_toy(name).vocabulary for name in NAMES)
    assert set(device.pieces) < set(cloud.pieces)
    assert cloud.fingerprint != device.fingerprint
    assert cloud.end != device.end


def test_an_unknown_toy_is_a_sentence() -> None:
    with pytest.raises(ModelError, match=r"no toy model 'toy-train': use toy-cloud, toy-device or toy-reader"):
        named_toy("toy-train")


@given(data=st.binary(max_size=60))
def test_any_bytes_are_spelled(data: bytes) -> None:
    model = named_toy("toy-device")
    assert model.vocabulary.join(spell(model, data)) == data


def test_the_longest_piece_is_taken_first() -> None:
    model = ToyModel(toy_pieces())
    assert [model.vocabulary.pieces[token] for token in model.tokenize("the then in")] == [b"the", b" the", b"n", b" ", b"in"]


def test_a_byte_without_a_token_is_lost_by_the_tokenizer_and_replaced_by_spell() -> None:
    pieces = (b"", b"a", b"b", "\N{REPLACEMENT CHARACTER}".encode())
    model = ToyModel(pieces)
    assert model.vocabulary.join(model.tokenize("aXb")) == b"ab"
    assert model.vocabulary.join(spell(model, b"aXb\xff")) == "a\ufffdb\ufffd".encode()


def test_logits_depend_on_the_last_two_bytes_only_however_they_were_cut() -> None:
    """So two toys that cut the same text differently are the same conditional model."""
    model = ToyModel(toy_pieces())
    ids = {piece: token for token, piece in enumerate(model.vocabulary.pieces)}
    cuts = ([b"the"], [b"t", b"he"], [b"th", b"e"], [b"x", b"h", b"e"], [b"a"] * 20 + [b"he"])
    first, *others = (model.logits([ids[piece] for piece in cut]) for cut in cuts)
    for other in others:
        np.testing.assert_array_equal(other, first)
    assert not np.array_equal(model.logits([ids[b"e"]]), first)


def test_the_same_toy_in_another_process_gives_the_same_logits() -> None:
    code = "from antiphon.models.toy import named_toy; print(named_toy('toy-cloud').open().extend([1, 2, 3]).tobytes().hex())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == named_toy("toy-cloud").open().extend([1, 2, 3]).tobytes().hex()


def test_noise_is_what_two_toys_differ_by() -> None:
    quiet = [ToyModel(toy_pieces(), seed=seed, noise=0.0).logits([5]) for seed in (1, 2)]
    np.testing.assert_array_equal(*quiet)
    noisy = [ToyModel(toy_pieces(), seed=seed, noise=0.5).logits([5]) for seed in (1, 2)]
    first, second = (process(logits, SamplingParams(temperature=1.0)) for logits in noisy)
    assert 0.05 < total_variation(first, second) < 0.9


def test_toys_agree_in_part_as_a_small_and_a_large_model_do() -> None:
    cloud, device = map(named_toy, NAMES)
    shared = [piece for piece in device.vocabulary.pieces if piece]
    rows = []
    for model in (cloud, device):
        ids = {piece: token for token, piece in enumerate(model.vocabulary.pieces)}
        rows.append(model.logits([ids[b"a"]])[[ids[piece] for piece in shared]])
    assert 0.3 < np.corrcoef(*rows)[0, 1] < 0.99


def test_pieces_are_shuffled_by_order_alone() -> None:
    assert toy_pieces(order=3) == toy_pieces(order=3) != toy_pieces(order=4)
    assert sorted(toy_pieces(order=3)) == sorted(toy_pieces(order=4))
    assert len(set(toy_pieces())) == 256 + len(MERGES) + 1


def test_the_end_is_the_empty_piece_wherever_it_stands() -> None:
    vocabulary = toy_vocabulary((b"a", b"", b"b"))
    assert (vocabulary.end, vocabulary.ends) == (1, (1,))
    assert vocabulary.canonical.tolist() == [True, False, True]


def test_a_reader_minds_all_that_it_has_read() -> None:
    reader, again = named_toy("toy-reader"), named_toy("toy-reader")
    one, other = (reader.tokenize(text) for text in ("a mill burned", "the mill burned"))
    assert not np.array_equal(reader.logits(one), reader.logits(other))
    np.testing.assert_array_equal(reader.logits(one), again.logits(one))
    assert reader.vocabulary.fingerprint == named_toy("toy-cloud").vocabulary.fingerprint
