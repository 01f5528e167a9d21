"""What the pages of all papers have in common: settings, claims, numbers with intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from antiphon.bench.charts import Series
from antiphon.bench.page import Html, Page, code, note, table
from antiphon.bench.reproduce.plans import Plan
from antiphon.bench.truncation import Mean


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


def settings_section(page: Page, plan: Plan, theirs: Mapping[str, tuple[str, str]], command: str) -> None:
    """The paper's settings beside ours, and the command that made the page."""
    rows = [[name, paper, ours] for name, (paper, ours) in theirs.items()]
    page.section(
        "Settings",
        table(["", "the paper", "here"], rows, texts=3),
        note(f"Hardware: {plan.hardware.source}. Draft: {plan.hardware.draft.source}. Verify: {plan.hardware.verify.source}."),
        code(command),
    )


def command(plan: Plan, name: str) -> str:
    """The command that measures this again."""
    models = f"--cloud-model {plan.settings()['cloud_model']} --model {plan.settings()['model']}"
    sampled = f"--temperature {plan.sampling.temperature:g} --seed {plan.seed}"
    return f"antiphon reproduce {name} --data DATA --scale {plan.scale} {models} {sampled} --profile {plan.profile}"


def interval(mean: Mean, form: Callable[[float], str]) -> str:
    """A mean, and its interval in brackets if it has one."""
    return form(mean.mean) + (f" [{form(mean.interval[0])}, {form(mean.interval[1])}]" if mean.interval else "")


def share(value: float) -> str:
    """A share of 1, as the papers write it."""
    return f"{value:.3f}"


def bits(value: float) -> str:
    """Bits, with thousands apart."""
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def curve(name: str, points: Sequence[tuple[float, Mean]], colour: int) -> Series:
    """A line of means with their intervals, where all have one."""
    ranges = tuple(mean.interval for _, mean in points if mean.interval)
    return replace(
        line(name, [(x, mean.mean) for x, mean in points], colour), ranges=ranges if len(ranges) == len(points) else ()
    )


def line(name: str, points: Sequence[tuple[float, float]], colour: int, *, dashed: bool = False) -> Series:
    """A line; dashed if it is calculated and not measured."""
    return Series(name, tuple(points), colour, hollow=dashed, dashed=dashed)
