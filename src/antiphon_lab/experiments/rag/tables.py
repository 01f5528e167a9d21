"""The tables of `antiphon-lab bench rag`: the same cells on the screen and on a page."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from antiphon_lab.experiments.rag.figures import Figures, median_and_p90
from antiphon_lab.experiments.rag.run import Report
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.link import Link
from antiphon_lab.report.screen import plus_minus, table_of
from antiphon_lab.stats.bootstrap import TOO_FEW, UNSURE
from antiphon_lab.stats.intervals import Mean

SPEED = ("queries/s", "times dragon", "tokens/s", "first ms\np50/p90", "between ms\np50/p90")
QUESTIONS = ("F1", "exact", "F1 less\ndrdg-tw", "not dense\n%")
TEXTS = ("perplexity", "with the\npolicy", "alone\n%", "not dense\n%")
COSTS = ("bytes up", "bytes down", "bytes\nboth ways", "messages\nan answer", "passes\na token")
DECIDED = ("certain", "late", "consulted", "changed", "own", "at once", "certified", "forced", "draft")
STEPS = tuple(f"{name}\n%" for name in DECIDED)
CAPTIONS = (
    f"\u00b1 and [ ]: the middle 95 % of resampled examples; {UNSURE}: {TOO_FEW}. alone: without evidence, along the text. not "
    "dense: tokens other than the dense mixture's behind the same answer",
    "bytes are payload + framing a token; both ways: with the opening of the session, which short answers share out among few",
    "certain: no evidence could change it. late: no evidence came in time. Of the consulted: changed from the device's own; "
    "its own, though the evidence led to neither draft; settled by the first evidence, by a certificate at all, or only by "
    "all scores, which `dragon` and `drdg-tw` always send; the cloud's draft too",
)


def tables(report: Report) -> list[Table]:
    """What a run found, link by link."""
    found = []
    for link, compute in report.settings:
        rows = report.rows(link, compute)
        for place, (headings, cells) in enumerate(parts(rows)):
            title = where(report, link, compute) if place == 0 else ""
            found.append(table_of(title, headings, cells, CAPTIONS[place]))
    return found


def where(report: Report, link: Link, compute: Compute) -> str:
    """The link and the hardware."""
    return f"{link.name}, {'real time' if report.plan.setting.real else compute.name}"


def parts(rows: Mapping[str, Figures]) -> list[tuple[Sequence[str], dict[str, list[str]]]]:
    """Headings and cells of the three tables: speed and quality, what crosses, how tokens were decided."""
    answered = next(iter(rows.values())).is_answered
    return [
        ((*SPEED, *(QUESTIONS if answered else TEXTS)), {name: [*speed(one), *quality(one)] for name, one in rows.items()}),
        (COSTS, {name: costs(one) for name, one in rows.items()}),
        (STEPS, {name: decided(one) for name, one in rows.items()}),
    ]


def speed(figures: Figures) -> list[str]:
    """The cells of SPEED."""
    return [
        spread(figures.queries_per_s, ".2f"),
        "-" if figures.speedup is None else spread(figures.speedup, ".2f"),
        spread(figures.tokens_per_s, ".1f"),
        median_and_p90(figures.first_token_s(), ".0f"),
        median_and_p90(figures.between_tokens_s(), ".0f"),
    ]


def quality(figures: Figures) -> list[str]:
    """The cells of QUESTIONS or TEXTS."""
    different = "-" if figures.different is None else spread(figures.different, ".1f", 100)
    if figures.is_answered:
        difference = "-" if figures.difference is None else "[{:+.1f}, {:+.1f}]".format(*figures.difference)
        return [spread(figures.score(0), ".1f"), spread(figures.score(1), ".1f"), difference, different]
    alone = sum(one.forced_alone for one in figures.answers) / sum(one.nats[2] for one in figures.answers)
    forced, policy = (spread(figures.perplexity(place), ".2f") for place in (0, 1))
    return [forced, policy, f"{100 * alone:.1f}", different]


def costs(figures: Figures) -> list[str]:
    """The cells of COSTS."""
    up, down = (
        [figures.per_token(lambda one, way=way, part=part: getattr(one, way)[part] / 8).mean for part in (0, 1)]  # type: ignore[misc]
        for way in ("up", "down")
    )
    return [
        f"{up[0]:.1f} + {up[1]:.1f}",
        f"{down[0]:,.1f} + {down[1]:.1f}",
        spread(figures.bytes, ",.1f"),
        spread(figures.messages, ".1f"),
        f"{figures.per_token(lambda one: one.cloud_passes).mean:.2f}",
    ]


def decided(figures: Figures) -> list[str]:
    """The cells of STEPS."""
    steps = figures.steps()
    names = ("certain", "late", "participation")
    if steps["participation"].mean == 0:
        return [*(f"{100 * steps[name].mean:.1f}" for name in names), *["-"] * 6]
    of = ("changed", "own", "at_once", "certified", "forced", "drafted")
    more = [f"{name}_of_consulted" for name in of]
    return [f"{100 * steps[name].mean:.1f}" for name in (*names, *more)]


def spread(mean: Mean, form: str, factor: float = 1.0) -> str:
    """A mean, and half of its interval."""
    return f"{factor * mean.mean:{form}} {plus_minus(mean.interval, form, factor)}"
