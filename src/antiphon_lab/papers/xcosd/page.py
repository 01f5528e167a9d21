"""The page of `antiphon-lab reproduce x-cosd`."""

from collections.abc import Callable, Sequence

from antiphon.methods import find
from antiphon_lab.experiments.quality import Score
from antiphon_lab.papers.pages import bits, claims_table, interval, settings_section
from antiphon_lab.papers.xcosd import paper
from antiphon_lab.papers.xcosd.claims import claims
from antiphon_lab.papers.xcosd.entrants import BY_LENGTH, CHAIN, DRAFTS, LOADED, STREAM, WRITTEN
from antiphon_lab.papers.xcosd.measures import ByLength, Curve, Load
from antiphon_lab.papers.xcosd.ratios import NAMED_RATE
from antiphon_lab.papers.xcosd.run import SHORT, Report
from antiphon_lab.report.charts import Axis, Series, curve, lines
from antiphon_lab.report.page import Html, Page, figure, folded, note, paragraph, side_by_side, table
from antiphon_lab.stats.bootstrap import TOO_FEW
from antiphon_lab.stats.intervals import Mean

LEAD = (
    "The tables and figures of “X-CoSD: Communication-Efficient Cross-Vocabulary Collaborative Speculative Decoding” (arXiv "
    "2609.09166), measured with small models of different vocabularies on the paper's link and on hardware like the paper's."
)
DRAWN = ("cloud", "dssd", "xcosd-e", "xcosd", "dsd", STREAM.name, CHAIN.name, "u-hlm")
"""The methods of the charts; each keeps its colour."""


def page(report: Report) -> Page:
    """All of it."""
    made = Page("X-CoSD, with our models", LEAD)
    made.section("What the paper says, and what is found here", claims_table(claims(report)), note(paper.EXPLAINED))
    _throughput(made, report)
    _loads(made, report)
    _lengths(made, report)
    _latency(made, report)
    _quality(made, report)
    settings_section(made, report.settings, _settings(report))
    return made


def _throughput(made: Page, report: Report) -> None:
    speed = Axis("tokens/s")
    near = lines(_drawn(report.throughput), Axis("downlink, Mbit/s (uplink 30)", log=True), speed)
    far = lines(_drawn(report.round_trips), Axis(f"round trip, ms, at {NAMED_RATE:g} Mbit/s"), speed)
    made.section(
        "Token throughput",
        side_by_side(
            figure(
                near, "Against the downlink's rate, as in the paper", f"Its figure begins at 100 Mbit/s ({paper.SECOND_HAND})."
            ),
            figure(far, "Against the round trip, which the paper leaves out", "`cloud` is streamed."),
        ),
        folded(
            "The numbers",
            _curves_table(report.throughput, "{:g}\nMbit/s"),
            _curves_table(report.round_trips, "{:g} ms\nround trip"),
        ),
        note(
            "Whole answers in virtual time, from the first round on: the prompt is read before. Intervals are over "
            f"{report.timed} questions."
        ),
    )


def _drawn(curves: Sequence[Curve]) -> list[Series]:
    named = {curve.name: curve for curve in curves}
    return [curve(name, named[name].points, colour) for colour, name in enumerate(DRAWN) if name in named]


def _curves_table(curves: Sequence[Curve], heading: str) -> Html:
    rows = [[one.name, *(interval(mean, "{:.1f}".format) for _, mean in one.points)] for one in curves]
    return table(["tokens/s", *(heading.format(x) for x, _ in curves[0].points)], rows)


_LOADS: tuple[tuple[str, Callable[[Load], str]], ...] = (
    ("up", lambda load: bits(load.up.mean)),
    ("closed\nform", lambda load: bits(load.form_up)),
    ("framing\nup", lambda load: bits(load.framing_up)),
    ("down", lambda load: bits(load.down.mean)),
    ("closed\nform", lambda load: bits(load.form_down)),
    ("framing\ndown", lambda load: bits(load.framing_down)),
    ("opening,\nboth ways", lambda load: bits(load.opening)),
    ("tokens\na round", lambda load: f"{load.tokens_a_round:.2f}"),
    ("cloud passes\na token", lambda load: f"{load.passes_a_token:.2f}"),
)


def _loads(made: Page, report: Report) -> None:
    papers = {entrant.name: entrant.paper or "ours" for entrant in LOADED}
    tasks = list(dict.fromkeys(load.task for load in report.loads))
    tables = [
        table(
            ["", "in the paper", *(heading for heading, _ in _LOADS)],
            [[load.name, papers[load.name], *(cell(load) for _, cell in _LOADS)] for load in report.loads if load.task == task],
            "" if task == "all" else f"On {task}",
            texts=2,
        )
        for task in tasks
    ]
    cloud, common = report.vocabularies
    made.section(
        f"Communication load, bits a token (N = {DRAFTS})",
        tables[0],
        folded("By data set", *tables[1:]),
        note(
            f"Closed forms of the paper's table 4 ({paper.SECOND_HAND}), by each answer: N (Lc + b) up; down b V for Naive, "
            "b |C| + b + L for X-CoSD, r K (L + b) for X-CoSD-E, L where all drafts stand; for UL N (Lc + b |C|) up. Here V = "
            f"{cloud:,}, |C| = {common:,}, b = 16. With b = 16 one rejection costs Naive 2.43 Mbit with Qwen2's 151,936 "
            "tokens and 2.05 Mbit with Llama 3.1's 128,256. What crossed is more than the form by padding to whole bytes "
            "and counts, and less where a distribution is sparse or a candidate was drawn twice. Framing is that of messages "
            "and WebSocket, without TCP and TLS; the opening is the question with its options, and the cloud's word that it is "
            "open, shared out among the tokens of an answer."
        ),
    )


def _lengths(made: Page, report: Report) -> None:
    def drawn(of: Callable[[ByLength], Mean]) -> list[Series]:
        return [
            curve(name, [(one.drafts, of(one)) for one in report.by_length if one.name == name], DRAWN.index(name))
            for name in BY_LENGTH
        ]

    drafts = Axis("drafts a round, N", low=0.0)
    rows = [
        [one.name, str(one.drafts), *(cell(one.load) for _, cell in _LOADS), interval(one.throughput, "{:.1f}".format)]
        for one in report.by_length
    ]
    made.section(
        "By the number of drafts a round",
        side_by_side(
            figure(lines(drawn(lambda one: one.load.down), drafts, Axis("bits a token", log=True)), "Down"),
            figure(lines(drawn(lambda one: one.load.up), drafts, Axis("bits a token")), "Up"),
            figure(lines(drawn(lambda one: one.throughput), drafts, Axis("tokens/s")), f"Throughput at {NAMED_RATE:g} Mbit/s"),
        ),
        folded("The numbers", table(["", "N", *(heading for heading, _ in _LOADS), "tokens/s"], rows)),
        note(f"On {report.questions_by_length} questions."),
    )


def _latency(made: Page, report: Report) -> None:
    rows = [
        [one.name, interval(one.mean, "{:.1f}".format), f"{one.p50:.1f}", f"{one.p90:.1f}", f"{one.first:.0f}"]
        for one in report.latencies
    ]
    made.section(
        f"Latency a token at {NAMED_RATE:g} Mbit/s, milliseconds",
        table(["", "mean", "p50", "p90", "first token"], rows),
        note("Each token has its share of its round. The first token's time is that of reading the prompt on this hardware."),
    )


def _quality(made: Page, report: Report) -> None:
    columns = list(dict.fromkeys((score.task, score.metric) for one in report.quality for score in one.scores))
    scores = {(one.name, score.task, score.metric): score for one in report.quality for score in one.scores}
    rows = []
    for entrant in WRITTEN:
        cells = []
        for task, metric in columns:
            score = scores.get((entrant.name, task, metric))
            cells.append("" if score is None else f"{score.score:.1f}{_ends(score)}")
        rows.append([entrant.name, "yes" if find(entrant.method).exact else "no", *cells])
    counts = ", ".join(f"{count} of {task}" for task, count in report.questions.items())
    made.section(
        "Quality, 0 to 100",
        table(["", "exact", *(f"{task}\n{metric}" for task, metric in columns)], rows, texts=2),
        note(
            f"Questions: {counts}. In brackets the 95 % interval of the difference to `cloud`. Scores of models this small "
            f"on so few questions only compare methods; `antiphon-lab bench quality` asks more. {SHORT} is asked of the "
            "paper's methods only."
        ),
        paragraph("Above temperature 0 an exact method writes other answers than `cloud`, as `cloud` does with another seed."),
    )


def _ends(score: Score) -> str:
    if score.difference is None:
        return ""
    return f" [{TOO_FEW}]" if score.interval is None else " [{:+.1f}, {:+.1f}]".format(*score.interval)


def _settings(report: Report) -> dict[str, tuple[str, str]]:
    settings = report.settings
    cloud, common = report.vocabularies
    return {
        "small model": ("vicuna-68m", settings.model),
        "large model": ("Qwen2-7B, Llama-3.1-8B", settings.cloud_model),
        "common vocabulary": ("below 20 % of the large model's", f"{common:,} of {cloud:,}, {common / cloud:.1%}"),
        "drafts a round": (f"{DRAFTS}", f"{DRAFTS}; trees of 2,2,2"),
        "bits of a probability": ("b; 32 for a candidate's", "16 everywhere, 8 for `tslt`"),
        "X-CoSD-E": (f"{paper.CANDIDATES} ({paper.SECOND_HAND})", "K = 20, and as many as pay; M = 10"),
        "U-HLM": ("20 temperatures up to 2, uncertain from 0.5 on", "the same"),
        "link": (f"{paper.LINK}, no delay ({paper.SECOND_HAND})", "the same, slower ones, and with round trips"),
        "data": (
            "WMT-DeEn, XSum, CNN/DailyMail, GSM8K, MMLU",
            ", ".join(f"{count} of {task}" for task, count in report.questions.items()),
        ),
        "temperature": (f"{paper.TEMPERATURE:g} ({paper.SECOND_HAND})", f"{settings.temperature:g}"),
    }
