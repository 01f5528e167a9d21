"""`sharpened`: `dsd` with drafts from the device's distribution at a temperature of their own. Up and down: as `dsd`.

Any distribution is a fair one to draft from where what is sent is what was sampled (METHODS 0), so the answer is exact.
"""

from dataclasses import dataclass

from antiphon.core.distributions import Probs
from antiphon.methods import closed_forms
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.speculative.chain import CHAIN_NEEDS
from antiphon.methods.speculative.dsd import DsdCloud, DsdDevice
from antiphon.methods.speculative.options import DsdOptions
from antiphon.options import option, require


@dataclass(frozen=True, slots=True)
class SharpenedOptions(DsdOptions):
    """Options of `sharpened`. Raises UsageError for a value that does not fit."""

    heat: float = option(0.5, "Temperature of the drafts, on top of that of the answer.")

    def __post_init__(self) -> None:
        DsdOptions.__post_init__(self)
        require(0.05 <= self.heat <= 20, f"heat must be between 0.05 and 20, not {self.heat}")


class SharpenedDevice(DsdDevice):
    """Drafts at that temperature."""

    def __init__(self, side: DeviceSide, options: SharpenedOptions) -> None:
        super().__init__(side, options)
        rounded = self.quantise
        self.quantise = lambda probs: rounded(heated(probs, options.heat))


def heated(probs: Probs, heat: float) -> Probs:
    """The probs at another temperature, shape as given."""
    powers: Probs = (probs / probs.max()) ** (1.0 / heat)
    return powers / powers.sum()


SHARPENED = Method(
    "sharpened",
    "dsd with drafts at a temperature of their own",
    True,
    SharpenedDevice,
    DsdCloud,
    options=SharpenedOptions,
    bits=closed_forms.dense_drafts,
    needs=CHAIN_NEEDS,
)
