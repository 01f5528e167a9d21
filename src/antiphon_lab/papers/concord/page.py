"""The page of `antiphon-lab reproduce concord`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from antiphon_lab.experiments.rag.figures import Figures, consulted, median_and_p90
from antiphon_lab.experiments.rag.page import latencies, tables_of
from antiphon_lab.experiments.rag.tables import spread
from antiphon_lab.links.notation import parse_link
from antiphon_lab.papers.concord import paper
from antiphon_lab.papers.concord.claims import claims, times
from antiphon_lab.papers.concord.controls import slow_start, waiting
from antiphon_lab.papers.concord.run import (
    DELAYED,
    FEW,
    LETTER,
    LETTER_NOCOMM,
    LETTER_NOSYSTEM,
    LINK,
    NATIVE,
    OURS,
    RATED,
    SLOWER,
    TASKS,
    TRIPS,
    Report,
)
from antiphon_lab.papers.concord.steps import diagnostics
from antiphon_lab.papers.pages import claims_table, settings_section
from antiphon_lab.papers.plans import Settings
from antiphon_lab.report.charts import Axis, bars_of, curve, lines, short
from antiphon_lab.report.page import Html, Page, figure, folded, note, side_by_side, table
from antiphon_lab.stats.intervals import Mean

LEAD = (
    "The tables and figures of “CONCORD: Asynchronous Sparse Aggregation for Device-Cloud RAG under Document Isolation” (arXiv "
    "2606.15179), measured with small models on both ends, the paper's link, and hardware like the paper's."
)
SHOWN = ("crcg", "drcg", "drdg-sw", "drdg-tw", "dragon", LETTER, "concord")
"""The methods of the paper's figures 3 and 4, and ours."""
THEIRS = "the\N{NO-BREAK SPACE}paper"
ABLATION = ("dragon", LETTER_NOSYSTEM, LETTER_NOCOMM, LETTER)
PRINTED = {LETTER: "concord", LETTER_NOSYSTEM: "concord-nosystem", LETTER_NOCOMM: "concord-nocomm"}
"""What the paper calls the rows that are to the letter."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure: the paper's numbers, where it prints some, and ours."""

    name: str
    theirs: paper.Numbers
    ours: Callable[[Figures], str]


F1 = Column("F1", paper.F1, lambda one: spread(one.score(0), ".1f"))
EM = Column("exact", paper.EM, lambda one: spread(one.score(1), ".1f"))
FORCED = Column("perplexity", paper.PERPLEXITY, lambda one: spread(one.perplexity(0), ".3f"))
POLICY = Column("with the\npolicy", {}, lambda one: spread(one.perplexity(1), ".3f"))
SHARE = Column("participation", paper.ABLATION_SHARE, lambda one: spread(one.share(consulted), ".3f"))
FIRST = Column("first token,\nms", paper.FIRST_TOKEN, lambda one: median_and_p90(one.first_token_s(), between=" / "))
BETWEEN = Column("between\ntokens, ms", paper.BETWEEN_TOKENS, lambda one: median_and_p90(one.between_tokens_s(), between=" / "))
MESSAGES = Column("messages\nan answer", paper.MESSAGES, lambda one: spread(one.messages, ".2f"))


def _queries(theirs: paper.Numbers) -> Column:
    return Column("queries/s", theirs, lambda one: spread(one.queries_per_s, ".3f"))


def _bytes(theirs: paper.Numbers) -> Column:
    return Column("bytes\na token", theirs, lambda one: spread(one.bytes, ",.1f"))


SPEED = Column("tokens/s", paper.TEXT_SPEED, lambda one: spread(one.tokens_per_s, ".2f"))


def page(report: Report) -> Page:
    """All of it."""
    made = Page("CONCORD, with our models", LEAD)
    made.section("What the paper says, and what is found here", claims_table(claims(report)))
    made.section("Figure 3: Natural Questions", *_questions(report))
    made.section("Table I and figure 4: WikiText-2", *_texts(report))
    made.section("With TCP's slow start, and without", *slow_start(report))
    made.section("Figure 5: ablation", *_ablation(report))
    made.section("Figure 6: latency", *_latency(report))
    made.section("Figure 7: two machines", *_machines(report))
    made.section("Table II: how steps were decided", *diagnostics(report))
    made.section("Waiting debt: its constraint, and tau_short(q)", *waiting(report))
    made.section("Round trips and rates", *_links(report))
    made.section("All figures", *(block for task in TASKS for block in _everything(report, task)))
    settings = report.plan.settings("concord")
    settings_section(made, settings, _settings(report, settings))
    return made


def beside(rows: Mapping[str, Figures], columns: Sequence[Column]) -> Html:
    """The paper's numbers beside ours."""
    headings = [
        heading
        for column in columns
        for heading in ([f"{column.name}\n{THEIRS}"] if column.theirs else []) + [f"{column.name}\nhere"]
    ]
    cells = [[name, *(cell for column in columns for cell in _cells(column, name, one))] for name, one in rows.items()]
    return table(["", *headings], cells)


def _cells(column: Column, row: str, one: Figures) -> list[str]:
    return ([column.theirs.get(PRINTED.get(row, row), "")] if column.theirs else []) + [column.ours(one)]


def _questions(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("nq", LINK, name) for name in SHOWN}
    yield side_by_side(
        figure(_bars(rows, lambda one: one.score(0), "F1", ".1f"), "F1"),
        figure(_bars(rows, lambda one: one.score(1), "exact matches, %", ".1f"), "Exact matches"),
        figure(_bars(rows, lambda one: one.queries_per_s, "queries/s", ".2f"), "Queries a second"),
        figure(_bars(rows, lambda one: one.bytes, "bytes a token", ",.0f", log=True), "Bytes a token"),
    )
    yield beside(rows, (F1, EM, _queries(paper.QUERIES), _bytes(paper.QUESTION_BYTES)))
    yield note(
        "F1 and exact matches from 0 to 100. \u00b1: half of the middle 95 % of resampled questions, here; over seeds, there."
    )


def _texts(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("wikitext", LINK, name) for name in SHOWN}
    yield side_by_side(
        figure(_bars(rows, lambda one: one.tokens_per_s, "tokens/s", ".1f"), "Tokens a second"),
        figure(_bars(rows, lambda one: one.bytes, "bytes a token", ",.0f", log=True), "Bytes a token"),
    )
    yield beside(rows, (FORCED, POLICY, SPEED, _bytes(paper.TEXT_BYTES)))
    yield note(
        "With the policy: what a method decides alone is scored by the device's distribution, which the paper does not do."
    )


def _ablation(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("nq", LINK, name) for name in ABLATION}
    yield side_by_side(
        figure(_bars(rows, lambda one: one.queries_per_s, "queries/s", ".2f"), "Queries a second"),
        figure(_bars(rows, lambda one: one.share(consulted), "share of tokens", ".3f"), "Participation"),
        figure(_bars(rows, lambda one: one.bytes, "bytes a token", ",.0f", log=True), "Bytes a token"),
    )
    yield beside(rows, (_queries(paper.ABLATION_QUERIES), SHARE, _bytes(paper.ABLATION_BYTES), F1, EM))
    yield note(
        "All to the letter: without our gate, our bound and our certificate. `nosystem` has no algorithm 1, so every token is "
        "the dense one. F1 and exact matches of the paper are those of figure 3; of the ablation it says that they do not "
        "differ."
    )
    ours = {name: report.figures("nq", LINK, name) for name in ("dragon", *OURS)}
    share = replace(SHARE, theirs={})
    yield beside(ours, (_queries({}), share, _bytes({}), replace(F1, theirs={}), replace(EM, theirs={})))
    yield note("The same of our `concord`, whose gate commits what no evidence could change.")


def _latency(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("nq", LINK, name) for name in ("dragon", LETTER, "concord")}
    yield side_by_side(*latencies(rows))
    yield beside(rows, (FIRST, BETWEEN, MESSAGES, _bytes(paper.CASE_BYTES)))
    yield note("P50 / P90. The first token's time begins with the question, and the prompt is read in it.")


def _machines(report: Report) -> Iterator[Html]:
    found = []
    for task in TASKS:
        for link, name in ((NATIVE, "native"), (DELAYED, "delay and jitter")):
            real = report.timed_rows(task, link)
            slow = report.rows(task, link, slow_device=True)  # of questions
            for row in ("dragon", LETTER, "concord"):
                theirs = paper.TWO_MACHINES[task, name] if row != "dragon" else "1"
                if row not in real and row not in slow:
                    continue
                cells = [*_measured(real.get(row), real["dragon"]), *_modelled(slow.get(row))]
                found.append([f"{task}, {name}", row, theirs, paper.TWO_MACHINES_BYTES[PRINTED.get(row, row)], *cells])
    real_time = ("times", "tokens/s", "times,\nprompt read", "tokens/s,\nprompt read", "bytes\na token")
    here = [
        *(f"{what}\nreal\N{NO-BREAK SPACE}time" for what in real_time),
        *(f"{what}\nslow\N{NO-BREAK SPACE}device" for what in ("times", "tokens/s")),
    ]
    yield table(
        ["", "", "times\nthe\N{NO-BREAK SPACE}paper", "bytes a token\nthe\N{NO-BREAK SPACE}paper", *here], found, texts=2
    )
    yield note(
        "Times: of the throughput of `dragon`. Real time: the device and its cloud are two processes of this machine, each at "
        "its own speed; without a GPU reading the prompt takes most of a short answer, so what follows it stands beside. They "
        f"meet over the link of `antiphon-lab link`. Slow device: in virtual time, the device's passes take {SLOWER:g} times "
        f"as long as the cloud's, as the paper says of its own. Native: {parse_link(NATIVE).source}. The paper does not tell "
        f"its other link; here it is `{DELAYED}`."
    )


def _measured(one: Figures | None, dragon: Figures) -> list[str]:
    if one is None:
        return [""] * 5
    decoding = times(one.decoding_per_s, dragon.decoding_per_s)
    return [*_modelled(one), decoding, spread(one.decoding_per_s, ".1f"), short(one.bytes.mean)]


def _modelled(one: Figures | None) -> list[str]:
    if one is None:
        return [""] * 2
    speedup = "" if one.speedup is None else spread(one.speedup, ".2f")
    return [speedup, spread(one.tokens_per_s, ".1f")]


def _links(report: Report) -> Iterator[Html]:
    trips = sorted((1000 * parse_link(link).round_trip(), link) for link in (LINK, *TRIPS))
    series = [
        curve(name, [(trip, report.figures("nq", link, name).queries_per_s) for trip, link in trips], colour)
        for colour, name in enumerate(FEW)
    ]
    rated = {**report.rows("nq", RATED)}
    yield side_by_side(
        figure(lines(series, Axis("round trip, ms"), Axis("queries/s", low=0.0)), "Against the round trip", "NQ, 1 Gbit/s."),
        figure(_bars(rated, lambda one: one.queries_per_s, "queries/s", ".2f"), "At 100 Mbit/s", "NQ, 50 ms."),
    )


def _bars(rows: Mapping[str, Figures], of: Callable[[Figures], Mean], label: str, form: str, *, log: bool = False) -> Html:
    return bars_of({name: of(one) for name, one in rows.items()}, label, form, log=log)


def _everything(report: Report, task: str) -> Iterator[Html]:
    yield folded(f"{task}, on the paper's link", *tables_of(report.rows(task, LINK)))
    for link in (NATIVE, DELAYED):
        yield folded(f"{task}, two processes in real time, {link}", *tables_of(report.timed_rows(task, link)))


def _settings(report: Report, settings: Settings) -> dict[str, tuple[str, str]]:
    link = parse_link(LINK)
    counts = {task: (report.runs[task].plan.examples, report.timed[task].plan.examples) for task in TASKS}
    questions, texts = (f"{virtual}; {real} in real time" for virtual, real in counts.values())
    models = dict.fromkeys((settings.model, settings.cloud_model))
    return {
        "models": ("Qwen3-1.7B on both ends", f"{' and '.join(models)}{' on both ends' if len(models) == 1 else ''}"),
        "questions": ("500 of NQ's development set, 3 seeds, 10 tokens", f"{questions}; 10 tokens"),
        "texts": ("100 of WikiText-2's test set, 64 tokens and 48", f"{texts}; 64 tokens and 48"),
        "documents": ("2 on each end", "2 passages of about 100 words on each end"),
        "link": ("50 ms, in the path", link.source),
        "decoding": ("greedy", f"temperature {settings.temperature:g}"),
    }
