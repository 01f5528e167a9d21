"""What forward passes cost on some hardware, so that virtual time can charge for them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PassCost:
    """Milliseconds of a forward pass: the first token, each further token of the pass, each 1,000 tokens that it looks back on."""

    first: float
    further: float = 0.0
    thousand: float = 0.0

    def seconds(self, width: int, length: int) -> float:
        """Seconds of a pass of `width` tokens that ends at `length` of them."""
        return (self.first + self.further * (width - 1) + self.thousand * length / 1000) / 1000


@dataclass(frozen=True, slots=True)
class Compute:
    """Two ends' hardware. source: where the figures come from."""

    name: str
    draft: PassCost
    verify: PassCost
    source: str
