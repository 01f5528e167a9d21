"""A long prompt is read little by little where others wait for what comes meanwhile."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from antiphon.config import SamplingParams
from antiphon.errors import CapacityError
from antiphon.methods.drafter import FIRST_PORTION, LONGER, PORTION_SECONDS, Drafter, Portions
from antiphon.methods.effects import Now, Step
from antiphon.models.toy import ToyModel, toy_pieces
from antiphon.vocabulary import identity
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import Compute, PassCost
from antiphon_lab.links.notation import parse_link

MODEL = ToyModel(toy_pieces())
PROMPT = MODEL.tokenize("a prompt that is much longer than a portion is, " * 16)


def drafter() -> Drafter:
    return Drafter(MODEL, MODEL.open(), PROMPT, identity(MODEL.vocabulary), SamplingParams())


def read(one: Drafter, seconds: Callable[[int], float]) -> list[int]:
    """The widths of the passes that read the prompt but for what the first draft reads; `seconds` of a pass by its width."""
    reading, clock, widths = Portions(), 100.0, list[int]()
    more = True
    while more:
        half, answer = reading.read(one), None
        try:
            while True:
                effect = half.send(answer)
                if isinstance(effect, Step):
                    assert effect.rows == 0
                    clock += seconds(len(effect.tokens))
                    widths.append(len(effect.tokens))
                    answer = effect.run()
                else:
                    assert isinstance(effect, Now)
                    answer = clock
        except StopIteration as stop:
            more = stop.value
    return widths


def test_a_portion_takes_as_long_as_may_be_waited_for() -> None:
    widths = read(drafter(), lambda width: width * PORTION_SECONDS / 20)
    assert widths[0] == FIRST_PORTION
    assert set(widths[1:]) == {20}
    assert sum(widths) < len(PROMPT) <= sum(widths) + 20 + 1


def test_a_fast_model_reads_the_rest_at_once() -> None:
    assert read(drafter(), lambda width: width * 1e-6) == [FIRST_PORTION]


def test_a_slow_model_reads_little_more_than_at_first() -> None:
    widths = read(drafter(), lambda width: width * 1.0)
    assert set(widths[1:]) == {round(LONGER * FIRST_PORTION)}


def test_where_a_pass_takes_as_long_however_wide_it_is_portions_grow() -> None:
    widths = read(drafter(), lambda width: 0.08)
    assert len(widths) < 12
    assert widths[-1] > 10 * FIRST_PORTION


def test_what_was_read_in_portions_is_what_is_read_at_once() -> None:
    one = drafter()
    read(one, lambda width: width * 1.0)
    step = next(one.distribution([]))
    assert 0 < step.keep < len(PROMPT)
    assert (step.run()[0] == MODEL.logits(PROMPT)).all()


def test_a_full_context_ends_drafting() -> None:
    one = drafter()
    half = one.catch_up(50)
    next(half)
    with pytest.raises(StopIteration) as stop:
        half.throw(CapacityError("full"))
    assert stop.value.value == 0
    assert one.exhausted


@pytest.mark.parametrize("method", ["coupled", "coupled-tree"])
def test_what_the_cloud_writes_is_shown_while_the_prompt_is_read(method: str) -> None:
    """The device needs seconds for its prompt; nothing that is shown waits for more than two of its portions."""
    slow = Compute("slow", PassCost(5.0, further=5.0), PassCost(30.0), "a device that reads 200 tokens a second")
    trial = Trial(method, parse_link("rtt=10ms"), slow, SamplingParams(), {}, max_tokens=40)
    (found,) = attempt(
        trial, ToyModel(toy_pieces()), ToyModel(toy_pieces()), ["a prompt that is much longer than a portion is, " * 16]
    )
    times = [found.answer.started, *(one.time for one in found.answer.emissions)]
    assert len(times) > 20
    assert max(later - earlier for earlier, later in pairwise(times)) < 2.5 * PORTION_SECONDS
    assert times[-1] - times[0] < 5e-3 * len(PROMPT)  # it was not read to its end
