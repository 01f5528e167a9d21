"""How near the automatic draft length comes to the best fixed one (METHODS 5), of a finished run of `bench speculative`."""

from collections.abc import Mapping
from dataclasses import dataclass

from antiphon_lab.experiments.speculative.figures import Figures
from antiphon_lab.experiments.speculative.grid import Row, Setting
from antiphon_lab.stats.bootstrap import TOO_FEW

NEARNESS = ("best N", "tokens/s", "auto", "ratio", "95 %")


@dataclass(frozen=True, slots=True)
class Nearness:
    """A method's automatic length beside its best fixed one. auto: to the same prompts with the same seeds, best its reference.

    So `auto.speedup` is the ratio of their tokens a second. The best is the one that was fastest in these very answers: that
    favours it, most where a few lengths are nearly as good.
    """

    setting: Setting
    method: str
    best_length: int
    best: Figures
    auto: Figures

    def cells(self) -> list[str]:
        """Those of NEARNESS."""
        interval = self.auto.speedup_interval
        spread = TOO_FEW if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
        speeds = (f"{self.best.tokens_per_s:.1f}", f"{self.auto.tokens_per_s:.1f}")
        return [str(self.best_length), *speeds, f"{self.auto.speedup:.3f}", spread]

    def as_json(self) -> dict[str, object]:
        """By name."""
        setting = self.setting
        where = {"link": setting.link.name, "profile": setting.compute.name, "temperature": setting.temperature}
        return {
            **where,
            "method": self.method,
            "best_length": self.best_length,
            "tokens_per_s": self.best.tokens_per_s,
            "auto_tokens_per_s": self.auto.tokens_per_s,
            "ratio": self.auto.speedup,
            "ratio_interval": self.auto.speedup_interval,
        }


def nearness(setting: Setting, rows: Mapping[Row, Figures]) -> list[Nearness]:
    """Of every method that was run in `setting` with the automatic length and with a fixed one."""
    found = []
    for auto, theirs in rows.items():
        fixed = {row: one for row, one in rows.items() if row.family == auto.family and row.variant.isdigit()}
        if auto.variant == "auto" and fixed:
            best = max(fixed, key=lambda row: fixed[row].tokens_per_s)
            paired = Figures(theirs.answers, fixed[best].answers)
            found.append(Nearness(setting, auto.family, int(best.variant), fixed[best], paired))
    return found
