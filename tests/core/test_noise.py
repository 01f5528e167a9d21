"""Noise that both ends know: the same numbers everywhere and always, for whichever tokens; races with the right winners."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.chance import answer_key
from antiphon.core.distributions import Ids
from antiphon.core.noise import Noise, _mixed, _philox
from core.noise_samples import KEYS, MASK, POSITIONS, numbers
from support.examples import examples


def philox(key: Sequence[int], counter: Sequence[int]) -> list[int]:
    words, (low, high) = list(counter), key
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [second >> 32 ^ words[1] ^ low, second & MASK, first >> 32 ^ words[3] ^ high, first & MASK]
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return words


def mixed(token: int, first: int, second: int) -> int:
    word = (token + first) & MASK
    word = (word ^ word >> 17) * 0xED5AD4BB & MASK
    word ^= second
    word = (word ^ word >> 11) * 0xAC4C1B51 & MASK
    word = (word ^ word >> 15) * 0x31848BAB & MASK
    return word ^ word >> 14


def drawn(key: int, position: int, token: int) -> int:
    """The 52 bits of a token."""
    words = [key >> shift & MASK for shift in (0, 32, 64, 96)]
    keys = philox(words[:2], [position, 0, words[2], words[3]])
    return mixed(token, keys[0], keys[1]) << 20 | mixed(token, keys[2], keys[3]) >> 12


KNOWN = {
    # (key, position, id): the 52 bits. Never to be changed: a peer of this version of the protocol has this noise.
    (0, 0, 0): 0x53FA9F97E7552,
    (0, 0, 1): 0x9617DA1F42326,
    (0, 1, 0): 0x64AF9845CC922,
    (1, 0, 0): 0xD510EDDA0CBA1,
    (2**32, 0, 0): 0x4E428761FB926,
    (2**64, 0, 0): 0xC2F8DC78CE5A2,
    (2**96, 5, 262143): 0xD64872A273FF7,
    (2**128 - 1, 2**31, 2**22 - 1): 0x61FC7C34F1114,
    (0x0123456789ABCDEF0123456789ABCDEF, 4095, 50256): 0x2C04CA2854957,
}


ASKED = {
    # (seed, prompt, chat, choice): the key of the answer.
    (0, "a", False, 0): 0x70B9CE2DA52A492C4BC47DDF73FE3233,
    (7, "In 1969 the first", False, 0): 0x46DB54DC071D6D8C375EF592BFD374FA,
    (7, "In 1969 the first", True, 0): 0xF79BFC979E676E41723446EDFDC4918F,
    (7, "In 1969 the first", False, 3): 0xE4A680C0ED674242139CB2334CDD8646,
    (2**64 - 1, "\u2192 na\u00efve \U0001f600", False, 0): 0x46584606F20C74677F8E75B0B0CD4DA3,
}


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((MASK, MASK), (MASK, MASK, MASK, MASK), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_numbers(
    key: tuple[int, int], counter: tuple[int, int, int, int], words: tuple[int, ...]
) -> None:
    assert _philox(*key, counter) == words == tuple(philox(key, counter))


def test_known_answers() -> None:
    for (key, position, token), bits in KNOWN.items():
        assert drawn(key, position, token) == bits
        assert Noise(key).uniform(position, numbers(1, token)).tolist() == [(bits + 0.5) / 2**52]


@pytest.mark.parametrize(("asked", "key"), ASKED.items(), ids=str)
def test_known_keys(asked: tuple[int, str, bool, int], key: int) -> None:
    seed, prompt, chat, choice = asked
    assert answer_key(seed, prompt, chat=chat, choice=choice) == key


@examples(60)
@given(KEYS, POSITIONS, st.lists(st.integers(0, 2**22 - 1), min_size=1, max_size=20))
def test_every_number_is_that_of_the_definition(key: int, position: int, tokens: list[int]) -> None:
    """Whichever tokens are asked for, and in whatever order: a number hangs on its own id."""
    found = Noise(key).uniform(position, np.array(tokens, dtype=np.int32)).tolist()
    assert found == [(drawn(key, position, token) + 0.5) / 2**52 for token in tokens]
    assert 0 < min(found) <= max(found) < 1


def test_the_ends_of_the_interval() -> None:
    for bits in (0, 2**52 - 1):
        uniform = (bits + 0.5) * 2.0**-52
        assert 0 < uniform < 1
        assert 0 < -np.log(uniform) < 37


def test_a_block_is_no_border() -> None:
    ids = numbers(100_000)
    whole = Noise(3).uniform(1, ids)
    for place in (0, 2**15 - 1, 2**15, 2**16 - 1, 2**16, 99_999):
        assert whole[place] == Noise(3).uniform(1, ids[place : place + 1])[0] == (drawn(3, 1, place) + 0.5) / 2**52


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_has_the_same_numbers() -> None:
    source = np.random.default_rng(1)
    asked = [[str(seed), prompt, chat, choice, 0, [0, 1, 2**22 - 1]] for seed, prompt, chat, choice in ASKED]
    for position in [1, 2, 65535, 65536, 2**31 - 1, *source.integers(0, 2**31, 40).tolist()]:
        ids = source.integers(0, 2**22, 200).tolist()
        asked.append(
            [str(int(source.integers(0, 2**63))), f"Nr. {position} \u00e9", bool(position % 2), position % 5, position, ids]
        )
    node = ["node", str(Path(__file__).with_name("noise.mjs"))]
    done = subprocess.run(node, input=json.dumps(asked), capture_output=True, text=True, timeout=60, check=True)
    for (seed, prompt, chat, choice, position, ids), (words, bits) in zip(asked, json.loads(done.stdout), strict=True):
        key = answer_key(int(seed), prompt, chat=chat, choice=choice)
        assert sum(word << 32 * place for place, word in enumerate(words)) == key
        found = [((upper << 20 | lower) + 0.5) / 2**52 for upper, lower in bits]
        assert found == Noise(key).uniform(position, np.array(ids, dtype=np.int32)).tolist()


class Torch:
    """The noise in torch, as a GPU would make it: whole numbers of 32 bits with a sign, 64 bits for the number at the end."""

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch", reason="torch is not installed")

    @staticmethod
    def signed(word: int) -> int:
        return word - 2**32 if word >= 2**31 else word

    def folded(self, words: Any, shift: int) -> Any:
        # A shift to the right copies the sign: what it fills in is taken off again.
        return words ^ ((words >> shift) & ((1 << (32 - shift)) - 1))

    def words(self, ids: Ids, first: int, second: int) -> Any:
        words = self.torch.from_numpy(ids.copy()) + self.signed(first)
        words = self.folded(words, 17) * self.signed(0xED5AD4BB) ^ self.signed(second)
        words = self.folded(words, 11) * self.signed(0xAC4C1B51)
        return self.folded(self.folded(words, 15) * self.signed(0x31848BAB), 14)

    def drawn(self, key: int, position: int, ids: Ids) -> Any:
        """The 52 bits of each token, int64."""
        keys, low = Noise(key).keys(position), 2**32 - 1
        upper, lower = (self.words(ids, *pair).to(self.torch.int64) & low for pair in (keys[:2], keys[2:]))
        return upper << 20 | lower >> 12


def test_torch_has_the_known_answers() -> None:
    torch = Torch()
    for (key, position, token), bits in KNOWN.items():
        assert torch.drawn(key, position, numbers(1, token)).tolist() == [bits]


def test_torch_has_the_same_numbers() -> None:
    """Of any keys, positions and ids, to the last bit of the float64."""
    torch, source = Torch(), np.random.default_rng(2)
    for _ in range(20):
        key, position = int.from_bytes(source.bytes(16), "little"), int(source.integers(2**31))
        ids = source.integers(0, 2**22, 70_000).astype(np.int32)
        keys, drawn = Noise(key).keys(position), torch.drawn(key, position, ids)
        assert (torch.words(ids, *keys[:2]).numpy().view(np.uint32) == _mixed(ids, *keys[:2])).all()
        found = (drawn.to(torch.torch.float64) + 0.5) * 2.0**-52
        assert (found.numpy() == Noise(key).uniform(position, ids)).all()
