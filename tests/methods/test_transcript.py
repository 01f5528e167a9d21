"""When an answer is over, and why: at an end of sequence, also where it is the last token allowed, else at its longest."""

import pytest

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import Transcript
from antiphon.methods.effects import Finish, Half
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair
from antiphon.testing.enumeration import output_distribution
from antiphon.testing.lockstep import run_pair

END = 7
FEW = {"draft_length": 1, "candidates": 1, "iterations": 1, "draws": 1, "truncate": "k=2", "expansion": "2", "precision": 16}


@pytest.mark.parametrize(
    ("numbers", "limit", "finish"),
    [
        ([1], 2, None),
        ([1, 2], 2, Finish.LENGTH),
        ([1, END], 2, Finish.END),
        ([1, END], 3, Finish.END),
        ([END], 1, Finish.END),
        ([1], 1, Finish.LENGTH),
    ],
)
def test_an_end_on_the_last_allowed_token_is_an_end(numbers: list[int], limit: int, finish: Finish | None) -> None:
    transcript = Transcript(frozenset({END}), limit)
    for number in numbers:
        assert transcript.finish is None
        transcript.commit(number)
    assert transcript.finish == finish
    assert transcript.remaining == limit - len(numbers)


def test_a_finished_answer_takes_no_more() -> None:
    for numbers in ([1, 2], [END]):
        transcript = Transcript(frozenset({END}), 2)
        for number in numbers:
            transcript.commit(number)
        with pytest.raises(RuntimeError, match="takes no more tokens"):
            transcript.commit(3)


@pytest.mark.core(16)
@pytest.mark.parametrize("pieces", [(SHARED, SHARED), (SMALL, LARGE)], ids=["shared", "different"])
@pytest.mark.parametrize("name", [name for name, method in WITHOUT_DOCUMENTS.items() if method.cloud is not None])
def test_both_halves_of_every_method_know_why(name: str, pieces: tuple) -> None:
    """On every branch: what ends with an end of sequence was ended by it, at whatever length."""
    pair, method, sampling = Pair(*pieces, seed=3), WITHOUT_DOCUMENTS[name], SamplingParams(temperature=1.0)
    options, finished = method.options_from(FEW), []

    def noting(half: Half) -> Half:
        finished.append((yield from half))
        return finished[-1]

    def run(chance: Chance) -> tuple[int, ...]:
        finished.clear()
        device, cloud = pair.sides(2, sampling, chance)
        assert method.cloud is not None
        run_pair(noting(method.device(device, options).run()), noting(method.cloud(cloud, options).run()))
        numbers = device.transcript.numbers
        expected = Finish.END if numbers[-1] in pair.common.ends else Finish.LENGTH
        assert finished == [expected, expected]
        assert (len(numbers) == 2) or expected is Finish.END
        return tuple(numbers)

    distribution = output_distribution(run)
    assert {len(numbers) for numbers in distribution} == {1, 2}
    assert any(numbers[-1] in pair.common.ends and len(numbers) == 2 for numbers in distribution)
