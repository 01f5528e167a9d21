"""Where options end: the last value that fits and the first that does not, on both sides; and the closed forms, by hand."""

import math
from typing import Any

import pytest

from antiphon.errors import UsageError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.baselines.cu_hlm import CompressedOptions
from antiphon.methods.closed_forms import Bits, Work
from antiphon.methods.effects import Exchanged
from antiphon.methods.mixture.options import LONGEST_WAIT, MixtureOptions
from antiphon.methods.speculative.options import SplitOptions
from antiphon.methods.speculative.xcosd_e import CandidateOptions
from antiphon.models.toy import toy_vocabulary
from antiphon.vocabulary import common_vocabulary

BOUNDS: dict[str, tuple[float, float]] = {
    "first": (1, 256),
    "ids_per_question": (1, 256),
    "questions": (0, 64),
    "chunk": (1, 4096),
    "chunks": (0, 64),
    "passages": (1, 64),
    "ahead": (1, 64),
}


@pytest.mark.parametrize(("name", "least", "most"), [(name, *bounds) for name, bounds in BOUNDS.items()])
def test_counts_of_a_mixture(name: str, least: int, most: int) -> None:
    for value in (least, least + 1, most - 1, most):
        assert getattr(MixtureOptions(**{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(UsageError, match=f"{name} must be {least} to {most}"):
            MixtureOptions(**{name: value})


@pytest.mark.parametrize(
    ("name", "fit", "unfit"),
    [
        ("min_share", (0.0, 1.0), (-0.01, 1.01, math.nan)),
        ("gate", (0.01, math.inf), (0.0, -1.0, math.nan)),
        ("timeout", (0.0, LONGEST_WAIT), (-0.01, LONGEST_WAIT + 0.01, math.nan)),
        ("delta", (0.0, 10.0), (-0.01, 10.01, math.nan)),
        ("epsilon", (0.01, 0.99), (0.0, 1.0, math.nan)),
        ("packing_top_p", (0.01, 1.0), (0.0, 1.01, math.nan)),
        ("debt_threshold", (0.0, 9.0), (-0.01, math.inf, math.nan)),
        ("max_debt", (0.0, 9.0), (-0.01, math.inf, math.nan)),
        ("short_timeout", (0.0, 9.0), (-0.01, math.inf, math.nan)),
        ("debt_repayment", (0.01, 9.0), (0.0, -0.01, math.inf, math.nan)),
        ("prompt_format", ("question", "text"), ("poem",)),
        ("realign", ("soft", "hard"), ("gently",)),
        ("undrafted", ("dense", "local"), ("both",)),
        ("packing", ("dense", "topp"), ("none",)),
        ("bound", ("next", "global"), ("last",)),
    ],
)
def test_other_options_of_a_mixture(name: str, fit: tuple[Any, ...], unfit: tuple[Any, ...]) -> None:
    for value in fit:
        assert getattr(MixtureOptions(**{name: value}), name) == value
    for value in unfit:
        with pytest.raises(UsageError):
            MixtureOptions(**{name: value})


CLOUD = toy_vocabulary([b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"ab", b""])
DEVICE = toy_vocabulary([b"a", b"b", b"c", b"x", b""])
COMMON = common_vocabulary(DEVICE, CLOUD)
WORK = Work(3, 5, 7, 11, Exchanged(drafted=31, candidates=13, distributions=2, entries=17))
"""3 tokens streamed, 5 corrections, 7 bonuses, 11 local; 31 drafts (20 sent), 13 candidates, 2 whole probs, 17 entries."""
L, LC, SIZE, WHOLE = 4, 2, 4, 10


def test_the_vocabularies_of_the_forms() -> None:
    assert (COMMON.target_bits, COMMON.common_bits, COMMON.size, COMMON.target_size) == (L, LC, SIZE, WHOLE)
    assert WORK.tested == 20


@pytest.mark.parametrize(
    ("form", "options", "bits"),
    [
        (accounting.streamed, None, Bits(0, 3 * L)),
        (accounting.ids_only, None, Bits((20 + 11) * LC, (12 + 3) * L)),  # what is local was no draft of its own
        (accounting.dense_drafts, SplitOptions(), Bits(20 * (LC + 16 * SIZE) + 11 * LC, 12 * L)),
        (accounting.kept_drafts, CompressedOptions(top_k=3), Bits(20 * (LC + 3 * (LC + 16)) + 11 * LC, 12 * L)),
        (accounting.sparse_drafts, SplitOptions(), Bits(20 * LC + 17 * (LC + 16), 12 * L)),
        (accounting.scalar_drafts, SplitOptions(), Bits(20 * (LC + 16), 12 * L)),
        (accounting.whole_targets, SplitOptions(precision=32), Bits(20 * (LC + 16) + 5 * L, 5 * 32 * WHOLE + 7 * L)),
        (
            accounting.common_targets,
            SplitOptions(precision=32),
            Bits(20 * (LC + 16) + 5 * L, 5 * (32 * (SIZE + 1) + L) + 7 * L),
        ),
        (
            accounting.candidates,
            CandidateOptions(),
            Bits(20 * (LC + 16) + 5 * L, 13 * (L + 16) + 2 * (16 * (SIZE + 1) + L) + 7 * L),
        ),
    ],
)
def test_the_closed_forms_by_hand(form: accounting.ClosedForm, options: Any, bits: Bits) -> None:
    assert form(WORK, COMMON, options) == bits
