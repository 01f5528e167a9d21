"""The page of `antiphon-lab reproduce tslt`."""

from collections.abc import Sequence

from antiphon_lab.experiments.truncation import Accepted
from antiphon_lab.papers.pages import bits, claims_table, interval, settings_section, share
from antiphon_lab.papers.tslt.claims import claims
from antiphon_lab.papers.tslt.cuts import Cut, Cuts
from antiphon_lab.papers.tslt.run import DRAFTS, EXPANSION, TEXT, Report, Speed
from antiphon_lab.report.charts import Axis, Series, curve, level, line, lines
from antiphon_lab.report.page import Html, Page, figure, folded, note, paragraph, side_by_side, table
from antiphon_lab.stats.intervals import Mean

LEAD = (
    "Figures 3 to 6 of “Fast Collaborative Inference via Distributed Speculative Decoding” (arXiv 2512.16273), measured with "
    "small models on the paper's link and on hardware like the paper's."
)


def page(report: Report) -> Page:
    """All of it."""
    made = Page("TSLT, with our models", LEAD)
    made.section("What the paper says, and what is found here", claims_table(claims(report)))
    _truncation(made, report.truncation)
    for tree in (False, True):
        _speed(made, report, tree=tree)
    _forms(made, report)
    settings_section(made, report.settings, _settings(report))
    return made


def _truncation(made: Page, cuts: Cuts) -> None:
    kept = Axis(f"tokens kept, of {cuts.common:,}", log=True)
    mass = lines([curve("", [(cut.kept, cut.mass) for cut in cuts.cuts], 0)], kept, Axis("probability", high=1.0))
    made.section(
        "Retained mass and acceptance by K",
        side_by_side(
            figure(mass, "Figure 3: the mass that truncation keeps", "With 95 % intervals over the texts."),
            figure(_acceptance(cuts, kept), "Figure 4: drafts that the cloud accepts", "Dashed: whole distributions."),
        ),
        folded("The numbers", _cuts_table(cuts.all, cuts)),
        note(
            f"Means over {cuts.positions} positions of {cuts.texts} texts ({TEXT}), by closed forms: 1 - TV for one draft, the "
            "sum over the first child for two. The text goes on with tokens of the cloud's model. Probabilities have 16 bits. "
            "p = .9 is the nucleus, the smallest set with that mass, whose size changes from place to place: K is its mean."
        ),
    )


_CURVES = (
    ("1 draft", "single"),
    ("2, with replacement", "with_replacement"),
    ("2, without replacement", "without_replacement"),
)


def _acceptance(cuts: Cuts, kept: Axis) -> Html:
    series: list[Series] = []
    for colour, (name, field) in enumerate(_CURVES):
        points = [(cut.kept, _of(cut.accepted, field)) for cut in cuts.cuts]
        series += [curve(name, points, colour), level(_of(cuts.full, field).mean, points, colour)]
    return lines(series, kept, Axis("accepted"))


def _of(accepted: Accepted, field: str) -> Mean:
    mean: Mean = getattr(accepted, field)
    return mean


def _cuts_table(some: Sequence[Cut], cuts: Cuts) -> Html:
    rows = [
        [
            cut.name if cut.name.startswith("p") else "",
            f"{cut.kept:,.0f}",
            f"{cut.share:.2%}",
            interval(cut.mass, share),
            *(interval(_of(cut.accepted, field), share) for _, field in _CURVES),
            interval(cut.lost, "{:.1%}".format),
            f"{cut.second_moved.mean:.4f} of {cut.second_bound.mean:.3f}",
        ]
        for cut in some
    ]
    full = (interval(_of(cuts.full, field), share) for _, field in _CURVES)
    rows.append(["", f"{cuts.common:,}", "100%", "1", *full, "", ""])
    names = (name for name, _ in _CURVES)
    return table(["", "K", "share", "mass", *names, "lost of 1 draft", "second moved,\nof its bound"], rows)


def _speed(made: Page, report: Report, *, tree: bool) -> None:
    speeds = [speed for speed in report.speeds if speed.kind.tree == tree]
    uplink, ratio = Axis("uplink, Mbit/s", log=True), Axis("times the cloud alone")
    number, what = (6, f"a tree of {EXPANSION}") if tree else (5, f"a chain of {DRAFTS} drafts")
    runs = lines(_runs(speeds), uplink, ratio)
    forms = lines(_closed(speeds), uplink, ratio)
    made.section(
        f"Speed-up against the uplink's rate: {'several candidates' if tree else 'one candidate'}",
        side_by_side(
            figure(
                runs,
                f"Figure {number}: {what}, as it ran",
                f"{report.prompts} answers of up to {report.tokens} tokens in virtual time, the prompt read before.",
            ),
            figure(
                forms, f"Figure {number} by the paper's closed form", "With the acceptance and the bits of figures 3 and 4."
            ),
        ),
        folded("The numbers", _speeds_table(speeds)),
    )


def _runs(speeds: Sequence[Speed]) -> list[Series]:
    return [
        curve(speed.kind.name, [(point.rate, point.speed_up) for point in speed.points], colour)
        for colour, speed in enumerate(speeds)
    ]


def _closed(speeds: Sequence[Speed]) -> list[Series]:
    points = [[(point.rate, point.form) for point in speed.points if point.form is not None] for speed in speeds]
    return [
        line(speed.kind.name, some, colour, dashed=True)
        for colour, (speed, some) in enumerate(zip(speeds, points, strict=True))
        if some
    ]


def _speeds_table(speeds: Sequence[Speed]) -> Html:
    rates = [point.rate for point in speeds[0].points]
    rows = [
        [
            speed.kind.name,
            interval(speed.accepted, share),
            f"{speed.tokens_a_round.mean:.2f}",
            bits(speed.distribution_bits),
            *(interval(point.speed_up, "{:.2f}".format) for point in speed.points),
        ]
        for speed in speeds
    ]
    return table(["", "accepted", "tokens\na round", "bits a distribution", *(f"{rate:g}\nMbit/s" for rate in rates)], rows)


def _forms(made: Page, report: Report) -> None:
    rows, worst = [], 0.0
    for speed in report.speeds:
        pairs = [(point.speed_up.mean, point.own_form) for point in speed.points if point.own_form is not None]
        if pairs:
            off = [run / form - 1 for run, form in pairs]
            worst = max(worst, *map(abs, off))
            name = f"{'tree' if speed.kind.tree else 'chain'}, {speed.kind.name}"
            rows.append([name, *(f"{each:+.1%}" for each in off)])
    rates = [f"{point.rate:g}\nMbit/s" for point in report.speeds[0].points]
    made.section(
        "The closed form against the runs",
        paragraph(
            "S = N T_LLM / (L T_SLM + Q D / R + T_LLM), with N = 1 + α + ... + α^L tokens a round, Q distributions of D bits, "
            f"and the uplink R. With α and D of the very answers, the runs differ from it by at most {worst:.1%}:"
        ),
        table(["", *rates], rows),
        note(
            "The form leaves out ids and the framing of messages, takes acceptance as the same at every token, and knows "
            "neither a last round that is cut short nor that a wide pass takes longer. Children that are drawn twice share "
            "a node: with replacement a tree mostly has fewer distributions than the form's. For trees the paper writes Lα + 1 "
            "for N, more than a tree brings, and prints the form so that it is below 1 whatever the numbers: its last term, 1, "
            "should be 1 / (Lα + 1). Here N is the same for both."
        ),
    )


def _settings(report: Report) -> dict[str, tuple[str, str]]:
    settings, common = report.settings, report.truncation.common
    dense = 16 * common / 1e6
    return {
        "small model": ("Llama 68M", settings.model),
        "large model": ("Llama 7B", settings.cloud_model),
        "vocabulary": ("32,000, shared", f"{common:,} common tokens of two vocabularies"),
        "a whole distribution": (
            "0.5 Mbit: 32,000 probabilities of 16 bits (the text also says 500 KB)",
            f"{dense:.2f} Mbit: {common:,} of 16 bits",
        ),
        "a truncated distribution": (
            "K numbers and K probabilities",
            "the same, 32 bits a token; “packed”: gaps and 8-bit logarithms",
        ),
        "whole distributions of a tree": (
            "as above",
            "24 bits a token: with gaps, as a sparse distribution that keeps everything",
        ),
        "tree": (f"{EXPANSION}, with replacement", f"{EXPANSION}, with replacement as the paper, and without"),
        "temperature": ("not said", f"{settings.temperature:g}"),
        "answers": ("not said", f"{report.prompts} of up to {report.tokens} tokens, for K = 32 {report.extreme.answers}"),
        "the cloud alone": ("tokens/s not said", f"{report.alone:.1f} tokens/s"),
    }
