"""What the pages of all papers have in common: settings, claims, numbers with intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from antiphon_lab.papers.plans import Settings
from antiphon_lab.report.page import Html, Page, code, note, table
from antiphon_lab.stats.bootstrap import TOO_FEW
from antiphon_lab.stats.intervals import Mean


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says about something, what we found, and why they differ if they do."""

    about: str
    says: str
    found: str
    why: str = ""


def claims_table(claims: Sequence[Claim]) -> Html:
    """A row a claim."""
    rows = [[claim.about, claim.says, claim.found, claim.why] for claim in claims]
    return table(["", "the paper", "here", "why"], rows, texts=4)


def settings_section(page: Page, settings: Settings, theirs: Mapping[str, tuple[str, str]]) -> None:
    """The paper's settings beside ours, where the figures come from, and the command that measures them again."""
    rows = [[name, paper, ours] for name, (paper, ours) in theirs.items()]
    rows.append(["seed", "", str(settings.seed)])
    draft, verify = settings.pass_sources
    page.section(
        "Settings",
        table(["", "the paper", "here"], rows, texts=3),
        note(f"Hardware: {settings.profile_source}. Draft: {draft}. Verify: {verify}."),
        note(settings.origin.sentence()),
        code(settings.origin.command),
    )


def holds(ratios: Sequence[Mean]) -> str:
    """Whether all of these are above 1, as their intervals decide it."""
    found = [mean.interval for mean in ratios]
    if None in found:
        return TOO_FEW
    if all(low > 1 for low, _ in filter(None, found)):
        return "yes"
    return "no" if any(high < 1 for _, high in filter(None, found)) else "not decided"


def interval(mean: Mean, form: Callable[[float], str]) -> str:
    """A mean, and in brackets its interval, or that there are too few units for one."""
    ends = TOO_FEW if mean.interval is None else f"{form(mean.interval[0])}, {form(mean.interval[1])}"
    return f"{form(mean.mean)} [{ends}]"


def times(mean: Mean) -> str:
    """A ratio with its interval."""
    return interval(mean, "{:.2f}".format)


def share(value: float) -> str:
    """A share of 1, as the papers write it."""
    return f"{value:.3f}"


def bits(value: float) -> str:
    """Bits, with thousands apart."""
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
