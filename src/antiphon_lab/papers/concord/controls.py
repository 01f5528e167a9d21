"""Two parts of the page of `antiphon-lab reproduce concord`: what slow start and what waiting debt do to the figures."""

from collections.abc import Iterator, Mapping

from antiphon_lab.experiments.rag.figures import Figures, consulted, late
from antiphon_lab.experiments.rag.tables import spread
from antiphon_lab.papers.concord.run import BOTH, FLAT, LETTER, LETTER_NOSYSTEM, LINK, WAITS, Report
from antiphon_lab.papers.pages import times
from antiphon_lab.report.charts import bars_of
from antiphon_lab.report.page import Html, figure, note, paragraph, side_by_side, table
from antiphon_lab.stats.bootstrap import TOO_FEW
from antiphon_lab.stats.intervals import Mean

SHOWN = tuple(name for name in BOTH if name != "dragon")
"""Rows that are held against `dragon`, with slow start and without."""
BARS = ("dragon", LETTER, "concord")


def slow_start(report: Report) -> Iterator[Html]:
    """Throughput over `dragon`'s on the two links, beside each other, for questions, new questions and texts."""
    sets = {
        "questions": [report.rows("nq", link) for link in (LINK, FLAT)],
        "new questions": [report.new_rows(link) for link in (LINK, FLAT)],
        "texts": [report.rows("wikitext", link) for link in (LINK, FLAT)],
    }
    yield paragraph(
        "The paper injects 50 ms and says nothing of TCP's window. Ours begins with 15 KB and doubles each round trip, as TCP "
        "does after a pause, so the first step of `dragon`, all scores, needs several of them. Slow start is our addition, and "
        "most of the gain on questions comes from it: without it `dragon` pays for little but waiting."
    )
    headings = [f"{name}\n{how}" for name in sets for how in ("with", "without")]
    cells = [[name, *(_over(rows.get(name)) for pair in sets.values() for rows in pair)] for name in SHOWN]
    yield table(["", *headings], cells, "Throughput over `dragon`'s, with slow start and without; [ ]: its 95 % interval")
    yield side_by_side(*(_speeds(name, pair) for name, pair in sets.items()))
    where = report.unseen.plan
    yield note(
        f"New questions: {where.examples} from number {where.skipped + 1} on in the order in which the benchmark takes them; "
        "while the methods were made no run went beyond the first 100. With slow start: `concord`; without: "
        "`concord,window=0`."
    )


def _over(one: Figures | None) -> str:
    return "" if one is None else _factor(one.speedup)


def _factor(mean: Mean | None) -> str:
    return "-" if mean is None else times(mean)


def _speeds(name: str, pair: list[dict[str, Figures]]) -> Html:
    speeds = {f"{row}, {how}": _speed(rows[row]) for how, rows in zip(("with", "without"), pair, strict=True) for row in BARS}
    unit = "queries/s" if "questions" in name else "tokens/s"
    return figure(bars_of(speeds, unit, ".2f"), f"{name.capitalize()}: {unit}")


def _speed(one: Figures) -> Mean:
    return one.queries_per_s if one.is_answered else one.tokens_per_s


def waiting(report: Report) -> Iterator[Html]:
    """What waiting control gains, whether its constraint holds, and what becomes of it with other tau_short."""
    rows = report.rows("nq", LINK)
    shown = {name: rows[name] for name in (LETTER_NOSYSTEM, LETTER, *WAITS, "concord", "concord-nosystem")}
    yield paragraph(
        "The paper's constraint wants the mean of \u03be - \u03c1\u03b1 over all tokens to be at most 0. Its queue has a cap, "
        "and a wait that was cut to nothing counts as much as a long one, so the rule does not enforce it: it is shown here as "
        "it came out. The paper gives no form of tau_short(q); `short_timeout` and `timeout_decay` have three: constant, "
        "linear to 0 at Q_max, halving."
    )
    yield table(
        [
            "",
            "queries/s",
            "over no waiting\ncontrol",
            "debt's growth\na token",
            "\u2264 0",
            "late, %",
            "consulted, %",
            "not dense, %",
        ],
        [[name, *_waits(one, rows, name)] for name, one in shown.items()],
    )
    yield note(
        "Over no waiting control: over the `nosystem` row of its kind, to the letter or ours. tau_short is 0 unless the row "
        "says: linear and halving begin with 90 ms. Waits as usual: a threshold above the limit. With a hard realign a wait "
        "below a round trip and a step is in vain, and so is every wait after it."
    )


def _waits(one: Figures, rows: Mapping[str, Figures], name: str) -> list[str]:
    base = LETTER_NOSYSTEM if name.startswith(LETTER) else "concord-nosystem"
    return [
        spread(one.queries_per_s, ".3f"),
        "" if name == base else _factor(one.over(rows[base])),
        spread(one.debt_growth, "+.3f"),
        _kept(one.debt_growth),
        spread(one.share(late), ".1f", 100),
        spread(one.share(consulted), ".1f", 100),
        "-" if one.different is None else spread(one.different, ".2f", 100),
    ]


def _kept(growth: Mean) -> str:
    """Whether the constraint holds, as far as the examples tell."""
    if growth.interval is None:
        return TOO_FEW
    low, high = growth.interval
    return "yes" if high <= 0 else "no" if low > 0 else "undecided"
