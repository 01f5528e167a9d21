"""The page of `antiphon-lab bench rag`: what a person would want to see of a run, in pictures, with the tables below."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from antiphon.methods.effects import Kind
from antiphon_lab.experiments.rag.answers import Step
from antiphon_lab.experiments.rag.figures import Figures, cdf, consulted, late, submitted
from antiphon_lab.experiments.rag.run import Report
from antiphon_lab.experiments.rag.tables import CAPTIONS, parts, where
from antiphon_lab.experiments.speculative.page import swept
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.report import charts
from antiphon_lab.report.charts import Axis, Bar, Series, short
from antiphon_lab.report.origin import Origin
from antiphon_lab.report.page import Html, Page, code, figure, note, paragraph, side_by_side, table

CURVES = 6
"""Rows of a chart of latencies at most; more cannot be told apart."""
WAYS: Mapping[str, Callable[[Step], bool]] = {
    "certain": lambda step: step.kind is Kind.CERTAIN,
    "late": late,
    "own": submitted,
    "confirmed": lambda step: step.kind is Kind.CONFIRMED,
    "changed": lambda step: step.kind is Kind.CHANGED,
}
"""How a token was decided; own: the device's, as the evidence led to neither draft."""
ENTIRE = ("crcg", "drcg", "drdg-sw")
"""Methods that are no mixture step by step: a chart of steps says nothing of them."""


def page(report: Report, origin: Origin) -> Page:
    """The page of a finished run."""
    setting = report.plan.setting
    what = "questions" if next(iter(report.answers.values()))[0].scores else "texts"
    models = " and ".join(config.name for config in dict.fromkeys(setting.models))
    time = "real" if setting.real else "virtual"
    lead = (
        f"{models}, private documents on the device and public ones in the cloud; {report.plan.examples} {what}, "
        f"{setting.tokens} tokens each, temperature {setting.sampling.temperature:g}, in {time} time."
    )
    made = Page("One answer from two libraries", lead)
    for link, compute in report.settings:
        rows = report.rows(link, compute)
        made.section(where(report, link, compute), *charts_of(rows), *tables_of(rows))
    if len(report.settings) > 2:
        made.section("Along the links", sensitivity(report))
    made.section("How it was measured", *_method(report, origin))
    return made


def charts_of(rows: Mapping[str, Figures]) -> Iterator[Html]:
    """The pictures of one link."""
    stepwise = {name: one for name, one in rows.items() if name not in ENTIRE}
    yield side_by_side(
        figure(_speeds(rows), "Tokens a second", "The answer as a whole, from the question on."),
        figure(_bytes(rows), "Bytes a token", "Framing included; each mark a factor, not a length."),
    )
    if any(one.different is not None for one in rows.values()):
        caption = "To the right is wrong, up is fast: what is bought by not waiting."
        yield side_by_side(
            figure(front(rows), "Speed against tokens that are not the dense mixture's", caption),
            figure(decisions(stepwise), "How tokens were decided", "Shares of all tokens."),
        )
    yield side_by_side(*latencies(stepwise))


def tables_of(rows: Mapping[str, Figures]) -> Iterator[Html]:
    """All figures of one link."""
    for (headings, cells), caption in zip(parts(rows), CAPTIONS, strict=True):
        yield table(["", *headings], [[name, *row] for name, row in cells.items()], caption)


def _speeds(rows: Mapping[str, Figures]) -> Html:
    return charts.bars_of({name: one.tokens_per_s for name, one in rows.items()}, "tokens/s", ".1f")


def _bytes(rows: Mapping[str, Figures]) -> Html:
    def one(name: str, figures: Figures) -> Bar:
        ways = tuple(figures.per_token(lambda a, way=way: sum(getattr(a, way)) / 8).mean for way in ("up", "down"))  # type: ignore[misc]
        return Bar(name, ways, short(sum(ways)))

    return charts.levels([one(*row) for row in rows.items()], ("up", "down"), "bytes a token")


def front(rows: Mapping[str, Figures]) -> Html:
    """Speed against wrong tokens, a point a row."""
    points = {name: one for name, one in rows.items() if one.different is not None}
    series = [
        Series(name, ((100 * one.different.mean, one.tokens_per_s.mean),), place % 8, line=False, hollow=place >= 8)
        for place, (name, one) in enumerate(points.items())
        if one.different is not None
    ]
    return charts.lines(series, Axis("not dense, % of tokens", low=-0.5), Axis("tokens/s", low=0.0))


def decisions(rows: Mapping[str, Figures]) -> Html:
    """Where tokens came from."""
    bars = []
    for name, one in rows.items():
        shares = tuple(100 * one.share(way).mean for way in WAYS.values())
        bars.append(Bar(name, shares, f"{100 * one.share(consulted).mean:.0f} % consulted"))
    return charts.bars(bars, tuple(WAYS), "% of tokens")


def latencies(rows: Mapping[str, Figures]) -> Iterator[Html]:
    """The distributions of the time to the first token, and between tokens."""
    shown = list(rows.items())[:CURVES]
    for title, values in (
        ("Until the first token", [one.first_token_s() for _, one in shown]),
        ("Between tokens", [one.between_tokens_s() for _, one in shown]),
    ):
        series = [_curve(name, found, colour) for colour, ((name, _), found) in enumerate(zip(shown, values, strict=True))]
        yield figure(charts.lines(series, Axis("ms"), Axis("share of tokens", low=0.0, high=1.0)), title, "Cumulative.")


def _curve(name: str, seconds: Sequence[float], colour: int) -> Series:
    return Series(name, tuple((1000 * value, share) for value, share in cdf(seconds)), colour)


def sensitivity(report: Report) -> Html:
    """Tokens a second along links that differ in one thing."""
    axis, places = swept([link for link, _ in report.settings])
    found = [report.rows(link, compute) for link, compute in report.settings]
    names = [name for name in found[0] if all(name in rows for rows in found)]
    series = []
    for colour, name in enumerate(names[:8]):
        means = [rows[name].tokens_per_s for rows in found]
        series.append(charts.curve(name, list(zip(places, means, strict=True)), colour))
    return figure(charts.lines(series, axis, Axis("tokens/s", low=0.0)), "Tokens a second", "With 95 % intervals.")


def _method(report: Report, origin: Origin) -> Iterator[Html]:
    yield paragraph(
        "Passages are shared out between the ends by a hash of their names; each end looks for itself, reads what it found in "
        "one context, and the token is that of the mixture. `drdg-tw` computes it in the simplest way. Tokens are held against "
        "the dense mixture one by one, behind the same answer."
    )
    for link, compute in report.settings:
        yield note(f"{link.name}: {link.source}. {_hardware(report, compute)}")
    yield code(origin.command)
    yield note(origin.sentence())


def _hardware(report: Report, compute: Compute) -> str:
    if report.plan.setting.real:
        return "Passes took what they took on this machine."
    return f"{compute.name}: {compute.source}; device: {compute.draft.source}; cloud: {compute.verify.source}."
