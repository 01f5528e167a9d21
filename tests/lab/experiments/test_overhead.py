"""`antiphon-lab bench overhead`: what counts as a round, and that its parts add up."""

from antiphon.device.answer import Piece
from antiphon.methods.effects import Kind
from antiphon_lab.experiments.overhead import _Meter, run


def test_tokens_without_text_at_the_end_of_an_answer_are_no_round() -> None:
    meter = _Meter()
    for pieces in ([], [Piece("a", (1,), Kind.ACCEPTED), Piece("b", (2,), Kind.BONUS)], [Piece("", (3,), Kind.BONUS)]):
        meter.lap(pieces)
    assert len(meter.rounds) == 2


def test_a_round_is_at_least_what_it_is_made_of() -> None:
    found = run(5, 2)
    assert found.rounds >= 5
    assert found.round_median_ms > found.models_median_ms > 0
    assert found.overhead_p99_ms >= found.overhead_median_ms >= 0
