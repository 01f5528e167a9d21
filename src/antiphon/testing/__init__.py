"""For whoever writes a method: `assert_exact` proves it, by the probabilities of every branch of both halves' real code.

Nothing here needs a test framework, a link or a model but two toys of three to five tokens. What `assert_exact` is made of is
public too: distributions of a method's answers over whole or breaking links, plain sampling, and the halves in lockstep.
"""

from antiphon.testing.distributions import (
    LARGE,
    SHARED,
    SMALL,
    Breaks,
    Distribution,
    Pair,
    broken_distribution,
    distance,
    method_distribution,
    target_distribution,
    variation,
    written,
)
from antiphon.testing.enumeration import EnumeratingChance, output_distribution
from antiphon.testing.exactness import FEW_BRANCHES, SAMPLINGS, VOCABULARIES, assert_exact, at_most
from antiphon.testing.lockstep import run_pair

__all__ = [
    "FEW_BRANCHES",
    "LARGE",
    "SAMPLINGS",
    "SHARED",
    "SMALL",
    "VOCABULARIES",
    "Breaks",
    "Distribution",
    "EnumeratingChance",
    "Pair",
    "assert_exact",
    "at_most",
    "broken_distribution",
    "distance",
    "method_distribution",
    "output_distribution",
    "run_pair",
    "target_distribution",
    "variation",
    "written",
]
