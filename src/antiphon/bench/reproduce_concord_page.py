"""The page of `antiphon reproduce concord`."""

from collections.abc import Callable, Iterator, Mapping

from antiphon.bench.charts import Axis, Bar, Series, bars, lines, short
from antiphon.bench.page import Html, Page, code, figure, note, side_by_side, table
from antiphon.bench.rag_figures import Figures, consulted
from antiphon.bench.rag_page import decisions, front, latencies, tables_of
from antiphon.bench.reproduce_concord import (
    DELAYED,
    FEW,
    LETTER,
    LINK,
    NATIVE,
    PAIR,
    RATED,
    SLOWER,
    TRIPS,
    Report,
)
from antiphon.bench.reproduce_concord_claims import said
from antiphon.net.notation import parse_link

LEAD = (
    "The tables and figures of “CONCORD: Asynchronous Sparse Aggregation for Device-Cloud RAG under Document Isolation” (arXiv "
    "2606.15179), measured with small models on both ends, the paper's link, and hardware like the paper's."
)
SIX = ("crcg", "drcg", "drdg-sw", "drdg-tw", "dragon", "concord")
"""The methods of the paper's figures 3 and 4."""
ABLATION = ("dragon", "concord-nosystem", "concord-nocomm", "concord")


def page(report: Report) -> Page:
    """All of it."""
    made = Page("CONCORD, with our models", LEAD)
    rows = [[one.about, one.paper, one.here, one.why] for one in said(report)]
    made.section("What the paper says, and what is found here", table(["", "the paper", "here", "why"], rows, texts=4))
    made.section("Natural Questions", *_questions(report))
    made.section("WikiText-2", *_texts(report))
    made.section("Ablation", *_ablation(report))
    made.section("Figure 6: latency", side_by_side(*latencies({name: report.figures("nq", LINK, name) for name in PAIR})))
    made.section("Two machines", *_machines(report))
    made.section("How steps were decided", *_diagnostics(report))
    made.section("Round trips and rates", *_links(report))
    made.section("All figures", *tables_of(report.rows("nq", LINK)), *tables_of(report.rows("wikitext", LINK)))
    made.section("Settings", *_settings(report))
    return made


def _questions(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("nq", LINK, name) for name in SIX}
    yield side_by_side(
        figure(_bars(rows, lambda one: one.score(0).mean, "F1", ".1f"), "Figure 3: F1"),
        figure(_bars(rows, lambda one: one.score(1).mean, "exact matches, %", ".1f"), "Figure 3: EM"),
        figure(_bars(rows, lambda one: one.queries_per_s.mean, "queries/s", ".2f"), "Figure 3: queries a second"),
        figure(_bars(rows, lambda one: one.bytes.mean, "bytes a token", ",.0f"), "Figure 3: bytes a token"),
    )


def _texts(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("wikitext", LINK, name) for name in SIX}
    yield table(
        ["Table I", *rows],
        [
            ["perplexity", *(f"{one.perplexity(0).mean:.2f}" for one in rows.values())],
            ["policy in the loop", *(f"{one.perplexity(1).mean:.2f}" for one in rows.values())],
        ],
    )
    yield side_by_side(
        figure(_bars(rows, lambda one: one.tokens_per_s.mean, "tokens/s", ".1f"), "Figure 4: tokens a second"),
        figure(_bars(rows, lambda one: one.bytes.mean, "bytes a token", ",.0f"), "Figure 4: bytes a token"),
    )


def _ablation(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("nq", LINK, name) for name in ABLATION}
    yield side_by_side(
        figure(_bars(rows, lambda one: one.queries_per_s.mean, "queries/s", ".2f"), "Figure 5: queries a second"),
        figure(_bars(rows, lambda one: one.share(consulted).mean, "share of tokens", ".3f"), "Figure 5: participation"),
        figure(_bars(rows, lambda one: one.bytes.mean, "bytes a token", ",.0f"), "Figure 5: bytes a token"),
    )


def _machines(report: Report) -> Iterator[Html]:
    found = []
    for task in ("nq", "wikitext"):
        for link, name in ((NATIVE, "native"), (DELAYED, "delay and jitter")):
            rows = report.rows(task, link, two_machines=True)
            found += [
                [f"{task}, {name}", row, f"{rows[row].tokens_per_s.mean:.1f}", short(rows[row].bytes.mean)] for row in PAIR
            ]
    yield table(["Figure 7", "", "tokens/s", "bytes a token"], found, texts=2)
    yield note(
        f"The device's passes take {SLOWER:g} times as long as the cloud's. Native: {parse_link(NATIVE).source}. The paper "
        f"gives no figures of the other link; here it is `{DELAYED}`."
    )


def _diagnostics(report: Report) -> Iterator[Html]:
    rows = {name: report.figures("nq", LINK, name) for name in ("dragon", "concord", "concord-nosystem", LETTER)}
    options = {name: report.options(name).debt() for name in ("concord", LETTER)}
    debts = [
        Series(name, tuple((place + 1.0, debt) for place, debt in enumerate(rows[name].debts(options[name]))), colour)
        for colour, name in enumerate(options)
    ]
    yield side_by_side(
        figure(decisions(rows), "Table II: where tokens came from", "Shares of all tokens."),
        figure(_supplements(rows), "What settled consulted steps", "Questions for ids, chunks, or all scores."),
        figure(lines(debts, Axis("token of the answer"), Axis("waiting debt")), "Debt over time", "On average."),
        figure(front(report.rows("nq", LINK)), "Speed against tokens that are not the dense mixture's"),
    )


def _supplements(rows: Mapping[str, Figures]) -> Html:
    parts = ("at once", "1 question", "2 questions or more", "chunks", "everything")
    found = []
    for name, one in rows.items():
        shares = [0.0] * len(parts)
        steps = [step for answer in one.answers for step in answer.steps if step.evidence]
        for step in steps:
            place = 4 if step.everything else 3 if step.chunks else min(step.questions, 2)
            shares[place] += 100 / len(steps)
        found.append(Bar(name, tuple(shares), f"{shares[0]:.1f} % at once"))
    return bars(found, parts, "% of consulted steps")


def _links(report: Report) -> Iterator[Html]:
    trips = sorted((1000 * parse_link(link).round_trip(), link) for link in (LINK, *TRIPS))
    series = [
        Series(name, tuple((trip, report.figures("nq", link, name).queries_per_s.mean) for trip, link in trips), colour)
        for colour, name in enumerate(FEW)
    ]
    rated = {**report.rows("nq", RATED)}
    yield side_by_side(
        figure(lines(series, Axis("round trip, ms"), Axis("queries/s", low=0.0)), "Against the round trip", "NQ, 1 Gbit/s."),
        figure(_bars(rated, lambda one: one.queries_per_s.mean, "queries/s", ".2f"), "At 100 Mbit/s", "NQ, 50 ms."),
    )


def _bars(rows: Mapping[str, Figures], of: Callable[[Figures], float], label: str, form: str) -> Html:
    return bars([Bar(name, (of(one),), f"{of(one):{form}}") for name, one in rows.items()], (label,), label)


def _settings(report: Report) -> Iterator[Html]:
    plan, link = report.plan, parse_link(LINK)
    questions, texts = (report.runs[task].plan.examples for task in ("nq", "wikitext"))
    yield table(
        ["", "the paper", "here"],
        [
            ["models", "Qwen3-1.7B on both ends", f"{plan.settings()['model']} and {plan.settings()['cloud_model']}"],
            ["questions", "500 of NQ's development set, 3 seeds, 10 tokens", f"{questions}, 10 tokens"],
            ["texts", "100 of WikiText-2's test set, 64 tokens and 48", f"{texts}, 64 tokens and 48"],
            ["documents", "2 on each end", "2 passages of about 100 words on each end"],
            ["link", "50 ms, in the path", link.source],
            ["decoding", "greedy", f"temperature {plan.sampling.temperature:g}"],
        ],
        texts=3,
    )
    hardware = plan.hardware
    yield note(f"Hardware: {hardware.source}; device: {hardware.draft.source}; cloud: {hardware.verify.source}.")
    models = f"--model {plan.settings()['model']} --cloud-model {plan.settings()['cloud_model']}"
    yield code(f"antiphon reproduce concord --data DATA --scale {plan.scale} {models} --seed {plan.seed}")
