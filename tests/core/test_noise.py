"""Noise that both ends know: the same numbers everywhere and always, for whichever tokens; races with the right winners."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.core.chance import PhiloxChance, Place, Role, answer_key
from antiphon.core.distributions import Ids, Probs, one_hot
from antiphon.core.noise import Noise, _mixed, _philox

KEYS = st.integers(0, 2**128 - 1)
POSITIONS = st.integers(0, 2**31)
MASK = 2**32 - 1


def numbers(count: int, first: int = 0) -> Ids:
    return np.arange(first, first + count, dtype=np.int32)


# By its definition, in whole numbers of any size: what docs/protocol.md says.


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


@settings(max_examples=60, deadline=None)
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


def test_torch_has_the_same_words() -> None:
    """In whole numbers of 32 bits with a sign: what every release and every device of it computes."""
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def signed(word: int) -> int:
        return word - 2**32 if word >= 2**31 else word

    def folded(words: "torch.Tensor", shift: int) -> "torch.Tensor":
        return words ^ ((words >> shift) & ((1 << (32 - shift)) - 1))

    for seed in range(20):
        ids, keys = numbers(70_000, 7 * seed), Noise(seed).keys(seed)
        for first, second in (keys[:2], keys[2:]):
            words = torch.from_numpy(ids.copy()) + signed(first)
            words = folded(words, 17) * signed(0xED5AD4BB) ^ signed(second)
            words = folded(words, 11) * signed(0xAC4C1B51)
            words = folded(words, 15) * signed(0x31848BAB)
            assert (folded(words, 14).numpy().view(np.uint32) == _mixed(ids, first, second)).all()


# Is it noise? Over ids, positions, seeds and prompts.


def at_random(bits: int, count: int, seed: int) -> list[int]:
    source = np.random.default_rng(seed)
    return [int.from_bytes(source.bytes(bits // 8), "little") for _ in range(count)]


def table(keys: Sequence[int], positions: Sequence[int], ids: Ids) -> Probs:
    """The uniform numbers of all keys at all positions: shape (keys times positions, ids)."""
    return np.stack([Noise(key).uniform(position, ids) for key in keys for position in positions])


def require_uniform(values: Probs) -> None:
    """In 256 cells, by the upper bits, and by what is left after them."""
    from scipy.stats import chisquare

    for scale in (1, 2**8, 2**20, 2**32, 2**40):
        cells = np.floor(values.ravel() * scale % 1.0 * 256).astype(int)
        assert chisquare(np.bincount(cells, minlength=256)).pvalue > 1e-5


def require_independent(first: Probs, second: Probs) -> None:
    """In 16 times 16 cells; so also near both ends, where races are won."""
    from scipy.stats import chi2_contingency

    for scale in (1, 2**8, 2**14):
        cells = [np.floor(values.ravel() * scale % 1.0 * 16).astype(int) for values in (first, second)]
        counts = np.bincount(16 * cells[0] + cells[1], minlength=256).reshape(16, 16)
        assert chi2_contingency(counts).pvalue > 1e-5
    both = ((first > 1 - 2**-7) & (second > 1 - 2**-7)).mean()
    assert abs(both - 2**-14) < 5 * np.sqrt(2**-14 / first.size)


def test_uniform_over_ids_positions_and_keys() -> None:
    require_uniform(table([1], [0, 1], numbers(200_000)))
    require_uniform(table([2], range(2000), numbers(100)))
    require_uniform(table(range(2000), [0], numbers(100)))
    require_uniform(table([answer_key(7, f"prompt {place}", chat=False) for place in range(2000)], [3], numbers(100, 50_000)))


@pytest.mark.parametrize("apart", [1, 2, 3, 256, 65_536, 131_072, 2**21])
def test_ids_are_independent(apart: int) -> None:
    """At one position, and over positions."""
    one = Noise(5).uniform(0, numbers(200_000))
    require_independent(one, Noise(5).uniform(0, numbers(200_000, apart)))
    keys = np.random.default_rng(6).integers(0, 2**32, (2, 2**18), dtype=np.uint32)
    for token in (0, 1000):
        words = [_mixed(np.full(2**18, one, dtype=np.int32), keys[0], keys[1]) for one in (token, token + apart)]
        require_independent(words[0] * 2.0**-32, words[1] * 2.0**-32)


def test_positions_keys_and_prompts_are_independent() -> None:
    ids = numbers(200_000)
    one = Noise(5).uniform(3, ids)
    for other in (Noise(5).uniform(4, ids), Noise(5).uniform(3 + 2**30, ids)):
        require_independent(one, other)
    for shift in (0, 31, 32, 64, 96, 127):
        require_independent(one, Noise(5 ^ 1 << shift).uniform(3, ids))
    require_independent(one[1:], Noise(5).uniform(4, ids)[:-1])


def test_every_bit_decides_over_all() -> None:
    """Of an id and of both keys: each changes half of the word's bits, any other bit as often as not."""
    source, count = np.random.default_rng(8), 40_000
    ids = source.integers(0, 2**18, count, dtype=np.int32)
    keys = source.integers(0, 2**32, (200, 2)).tolist()
    for bit in range(32):
        flipped = np.zeros((3, 32))
        for first, second in keys:
            part, shift = ids[: count // 200], 1 << bit
            words = _mixed(part, first, second)
            others = [_mixed(part, first ^ shift, second), _mixed(part, first, second ^ shift)]
            others.append(_mixed(part ^ shift, first, second) if bit < 22 else ~words)
            for place, other in enumerate(others):
                flipped[place] += np.unpackbits((words ^ other).view(np.uint8)).reshape(-1, 32).sum(axis=0)
            ids = np.roll(ids, count // 200)
        flipped = flipped[: 2 if bit >= 22 else 3]
        assert abs(flipped / count - 0.5).max() < 0.04, bit


def test_the_order_of_neighbours() -> None:
    """Which of four wins, and who comes next: all 24 orders alike."""
    from scipy.stats import chisquare

    for ids in (numbers(4), numbers(4, 1021), np.array([3, 259, 65_539, 7], dtype=np.int32)):
        orders = np.argsort(table([21], range(12_000), ids), axis=1) @ [64, 16, 4, 1]
        assert chisquare(np.unique(orders, return_counts=True)[1]).pvalue > 1e-5
        assert len(np.unique(orders)) == 24


def test_the_fastest_of_a_vocabulary() -> None:
    """The smallest E of n tokens is exponential with rate n, and any of them has it."""
    from scipy.stats import kstest

    ids = numbers(50_000)
    races = [PhiloxChance(key).race(2, ids).times() for key in at_random(128, 400, 4)]
    assert kstest([float(times.min()) * len(ids) for times in races], "expon").pvalue > 1e-5
    assert kstest([int(times.argmin()) / len(ids) for times in races], "uniform").pvalue > 1e-5


# Races.


def plain(key: int, position: int, probs: Probs, ids: Ids, count: int) -> list[int]:
    """A race by its definition, every time computed."""
    able = np.flatnonzero(probs)
    with np.errstate(over="ignore"):
        times = -np.log(Noise(key).uniform(position, ids)[able]) / probs[able]
    return able[np.argsort(times, kind="stable")[:count]].tolist()


def distribution(seed: int, size: int, sharpness: float) -> Probs:
    scores = sharpness * np.random.default_rng(seed).normal(size=size)
    probs = np.exp(scores - scores.max())
    return probs / probs.sum()


def test_prompts_seeds_forms_and_choices_share_nothing() -> None:
    """One seed given to two prompts: other keys, and of all the chance of an answer no number twice."""
    asked = [
        (1, "a", False, 0),
        (2, "a", False, 0),
        (1, "a ", False, 0),
        (1, "a", True, 0),
        (1, "a", False, 1),
        (1, "b", False, 0),
    ]
    keys = [answer_key(seed, prompt, chat=chat, choice=choice) for seed, prompt, chat, choice in asked]
    assert len(set(keys)) == len(asked)
    drawn_numbers: list[float] = []
    for key in keys:
        chance = PhiloxChance(key)
        drawn_numbers += chance.race(0, numbers(200)).times().tolist()
        drawn_numbers += [chance.at(Place(position), role)._uniform() for role in Role for position in range(20)]
    assert len(set(drawn_numbers)) == len(drawn_numbers)


@settings(max_examples=60, deadline=None)
@given(KEYS, POSITIONS, st.integers(1, 40), st.sampled_from([0.0, 1.0, 6.0, 200.0]), st.integers(1, 6), st.integers(0, 2**20))
def test_the_first_of_a_race(key: int, position: int, size: int, sharpness: float, count: int, first: int) -> None:
    probs, ids = distribution(key % 1000, size, sharpness), numbers(size, first)
    probs[::3] = 0.0
    if not probs.any():
        probs = one_hot(0, size)
    race = PhiloxChance(key).race(position, ids)
    assert race.first(probs, count) == plain(key, position, probs, ids, count)
    assert race.winner(probs) == plain(key, position, probs, ids, 1)[0]


@pytest.mark.parametrize("sharpness", [0.0, 0.5, 3.0, 12.0, 40.0])
def test_a_vocabulary_as_large_as_a_real_one(sharpness: float) -> None:
    """Only what can win is computed; the winners are those of the whole race."""
    probs, ids = distribution(3, 262_144, sharpness), numbers(262_144)
    for position in range(12):
        for count in (1, 4):
            assert PhiloxChance(9).race(position, ids).first(probs, count) == plain(9, position, probs, ids, count)


@pytest.mark.parametrize("likely", [0.1, 0.3, 0.6])
def test_the_unlikely_are_not_left_out(likely: float) -> None:
    """One likely token and a hundred of which each is not, but of which one often wins, and often by a hair."""
    probs, ids = np.full(101, (1 - likely) / 100), numbers(101)
    probs[40] = likely
    for position in range(300):
        race = PhiloxChance(6).race(position, ids)
        for count in (1, 2, 5):
            assert race.first(probs, count) == plain(6, position, probs, ids, count)


def test_the_fastest_of_all_has_to_be_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each u is as large as can be: no bound leaves anyone out, and who has a probability of 0 cannot win all the same."""
    monkeypatch.setattr("antiphon.core.noise._mixed", lambda ids, first, second: np.full(len(ids), MASK, dtype=np.uint32))
    probs = np.array([0.0, 0.25, 0.0, 0.75])
    assert PhiloxChance(1).race(0, numbers(4)).first(probs, 3) == [3, 1]
    assert PhiloxChance(1).race(0, numbers(4)).winner(probs) == 3


@settings(max_examples=60, deadline=None)
@given(KEYS, POSITIONS, st.integers(2, 60), st.randoms())
def test_the_order_of_the_tokens_is_nothing(key: int, position: int, size: int, source: object) -> None:
    """Two devices number the cloud's tokens in other ways, and one lacks some: whoever wins is the same token."""
    probs, ids = distribution(key % 1000, size, 2.0), numbers(size)
    order = np.array(source.sample(range(size), size))  # type: ignore[attr-defined]
    one = ids[PhiloxChance(key).race(position, ids).first(probs, 5)].tolist()
    assert ids[order][PhiloxChance(key).race(position, ids[order]).first(probs[order], 5)].tolist() == one
    fewer = order[order != one[0]]
    assert ids[fewer][PhiloxChance(key).race(position, ids[fewer]).first(probs[fewer], 4)].tolist() == one[1:]


def test_of_equals_the_lower_id_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.core.noise._mixed", lambda ids, first, second: np.full(len(ids), 77, dtype=np.uint32))
    probs, ids = np.full(6, 1 / 6), np.array([5, 3, 9, 0, 4, 8], dtype=np.int32)
    assert ids[PhiloxChance(1).race(0, ids).first(probs, 4)].tolist() == [0, 3, 4, 5]


def test_probabilities_beyond_all_bounds() -> None:
    """So small that a time is infinite: such a token comes last, and loses to no one who cannot win."""
    probs = np.array([0.0, 5e-324, 1.0, 0.0, 1e-320])
    race = PhiloxChance(3).race(0, numbers(5))
    assert race.first(probs, 4)[0] == 2
    assert sorted(race.first(probs, 4)) == [1, 2, 4]
    assert sorted(race.first(np.array([5e-324, 0.0, 5e-324]), 2)) == [0, 2]


def test_any_race_can_be_run_again_in_any_order() -> None:
    probs, chance, ids = distribution(1, 50, 1.0), PhiloxChance(4), numbers(50)
    winners = [chance.race(position, ids).winner(probs) for position in range(40)]
    chance.at(Place(3), Role.DRAFT).categorical(probs)
    assert [chance.race(position, ids).winner(probs) for position in reversed(range(40))] == winners[::-1]
    assert [PhiloxChance(4).race(position, ids).winner(probs) for position in range(40)] == winners
    assert len(set(winners)) > 5


def test_a_token_wins_as_often_as_its_probability() -> None:
    from scipy.stats import chisquare

    probs, ids = np.array([0.5, 0.25, 0.15, 0.07, 0.03]), numbers(5)
    counts = np.bincount([PhiloxChance(key).race(key % 7, ids).winner(probs) for key in range(4000)], minlength=5)
    assert chisquare(counts, 4000 * probs).pvalue > 1e-3
    assert chisquare(counts, 4000 * np.array([0.47, 0.27, 0.16, 0.07, 0.03])).pvalue < 1e-3


def test_two_distributions_share_their_winner_as_often_as_promised() -> None:
    """At least (1 - TV) / (1 + TV), METHODS 3."""
    first, second = distribution(1, 30, 1.0), distribution(2, 30, 1.0)
    variation = np.abs(first - second).sum() / 2
    chances = [PhiloxChance(key).race(0, numbers(30)) for key in range(3000)]
    share = np.mean([race.winner(first) == race.winner(second) for race in chances])
    assert share > (1 - variation) / (1 + variation) - 0.03
