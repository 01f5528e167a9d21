"""TSLT's closed forms of speed, to stand beside what virtual time says (TSLT 2.3, and 4 before 4.3)."""

from dataclasses import dataclass, replace


def tokens_a_round(acceptance: float, drafts: int) -> float:
    """Of `drafts` drafts in a row, each standing with probability `acceptance` if those before it do, and one token more."""
    return sum(acceptance**depth for depth in range(drafts + 1))


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """TSLT's S_inf: the speed of drafting over that of the large model alone. Seconds; bits of one probs; probs of a round.

    With one candidate a round has as many distributions as drafts; a tree has one for each node with children, and `acceptance`
    is that of several candidates. The paper's form for trees is printed so that it cannot exceed 1 (its round would need the
    large model for every token); this is the same ratio with one pass of the large model a round, as its text says.
    """

    drafts: int
    draft_seconds: float
    verify_seconds: float
    distribution_bits: float
    distributions: int

    def at(self, acceptance: float, rate: float) -> float:
        """The ratio, at an uplink of `rate` bit/s."""
        seconds = self.drafts * self.draft_seconds + self.distributions * self.distribution_bits / rate + self.verify_seconds
        return tokens_a_round(acceptance, self.drafts) * self.verify_seconds / seconds

    def with_bits(self, distribution_bits: float) -> "SpeedUp":
        """The same with distributions of so many bits."""
        return replace(self, distribution_bits=distribution_bits)
