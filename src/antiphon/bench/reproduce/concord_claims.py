"""What CONCORD says in numbers and sentences, and what is found here, with the reason where they differ."""

from collections.abc import Sequence

from antiphon.bench.rag_figures import Figures, at_once, consulted, quantile
from antiphon.bench.rag_tables import spread
from antiphon.bench.reproduce.concord import DELAYED, FAST, LETTER, LINK, LOSSY, NATIVE, RATED, Report
from antiphon.bench.reproduce.pages import Claim
from antiphon.bench.truncation import Mean
from antiphon.methods.effects import Kind

STRONGER = (
    "This `dragon` keeps both ends drafting, and waits only where the cloud's draft is not the token; the paper's has a median "
    "of 78.5 ms between tokens, a round trip for nearly each, as `drdg-tw` has here."
)
_SPREAD = "Small models on few examples: compare rows, not papers."


def claims(report: Report) -> list[Claim]:
    """All of it, in the paper's order."""
    return [
        *_quality(report),
        *_speed(report),
        *_bytes(report),
        *_ablation(report),
        *_latency(report),
        *_machines(report),
        *_diagnostics(report),
    ]


def _quality(report: Report) -> list[Claim]:
    dragon, concord = (report.figures("nq", LINK, name) for name in ("dragon", "concord"))
    texts = [report.figures("wikitext", LINK, name) for name in ("drdg-tw", "dragon", "concord")]
    scores = ", ".join(f"{one.score(0).mean:.1f} and {one.score(1).mean:.1f}" for one in (dragon, concord))
    perplexities = ", ".join(f"{one.perplexity(0).mean:.2f}" for one in texts)
    policy = f"{texts[2].perplexity(1).mean:.2f}"
    return [
        Claim("F1 and EM on NQ", "DRAGON .268 and .169, CONCORD .267 and .167", f"In hundredths: {scores}", _SPREAD),
        Claim(
            "perplexity on WikiText-2",
            "DRDG/TW, DRAGON and CONCORD 17.016 each",
            f"{perplexities}; of `concord` with the policy in the loop {policy}",
            "Teacher-forced all mixtures are one; what a policy costs shows only if steps that it decides alone are scored so.",
        ),
    ]


def _speed(report: Report) -> list[Claim]:
    found = []
    for task, paper in (("nq", "0.782 to 1.295 queries/s, 1.66 times"), ("wikitext", "9.29 to 20.00 tokens/s, 2.15 times")):
        near, rated = (report.rows(task, link) for link in (LINK, RATED))
        here = (
            f"{_times(near['concord'], near['dragon'])} times; against `drdg-tw` {_times(near['concord'], near['drdg-tw'])}; "
            f"the device alone, the most that not waiting can bring, {_times(near['crcg'], near['dragon'])}. With 100 Mbit/s "
            f"{_times(rated['concord'], rated['dragon'])}, {_times(rated['concord'], rated['dragon+ahead=4'])} if it runs 4 "
            "steps ahead instead of 8"
        )
        found.append(Claim(f"CONCORD against DRAGON, {task}", paper, here, STRONGER if task == "nq" else ""))
    return found


def _times(ours: Figures, theirs: Figures) -> str:
    fast, slow = (one.queries_per_s if one.is_answered else one.tokens_per_s for one in (ours, theirs))
    return times(fast, slow)


def times(ours: Mean, theirs: Mean) -> str:
    """How many times as much."""
    return f"{ours.mean / theirs.mean:.2f}" if theirs.mean else "-"


def _bytes(report: Report) -> list[Claim]:
    found = []
    for task, paper in (("nq", "253,480 to 283"), ("wikitext", "243,640 to 161")):
        dragon, concord = (report.figures(task, LINK, name).bytes.mean for name in ("dragon", "concord"))
        found.append(Claim(f"bytes a token, {task}", paper, f"{dragon:,.0f} to {concord:.1f}, framing included"))
    lossy, letter = (report.figures("nq", LINK, name) for name in (LOSSY, LETTER))
    found.append(
        Claim(
            "bytes a token, as the paper has it",
            "the tail bound is the cloud's largest score",
            f"`concord` so, without our gate, {letter.bytes.mean:,.0f}; `dragon` with tails cut off {lossy.bytes.mean:,.0f}",
            "With the largest score that was not sent as the bound, hardly a step needs more than its first evidence.",
        )
    )
    return found


def _ablation(report: Report) -> list[Claim]:
    rows = report.rows("nq", LINK)
    names = ("dragon", "concord-nosystem", "concord-nocomm", "concord")

    def each(of: str) -> str:
        return ", ".join(_figure(rows[name], of) for name in names)

    return [
        Claim("ablation: queries/s", "DRAGON .765, NoSys 1.123, NoComm 1.083, CONCORD 1.286", each("speed"), STRONGER),
        Claim(
            "ablation: participation",
            "NoSys 1.000; by table II CONCORD .783",
            each("participation"),
            "The gate needs no evidence.",
        ),
        Claim("ablation: bytes a token", "256,518, 331, 4,982, 261", each("bytes")),
    ]


def _figure(figures: Figures, of: str) -> str:
    match of:
        case "speed":
            return f"{figures.queries_per_s.mean:.2f}"
        case "participation":
            return f"{figures.share(consulted).mean:.3f}"
        case _:
            return f"{figures.bytes.mean:,.0f}"


def _latency(report: Report) -> list[Claim]:
    rows = report.rows("nq", LINK)
    first = ", ".join(_pair(rows[name].first_token_s()) for name in ("dragon", "concord"))
    between = ", ".join(_pair(rows[name].between_tokens_s()) for name in ("dragon", "concord"))
    messages = " to ".join(f"{rows[name].messages.mean:.1f}" for name in ("dragon", "concord"))
    return [
        Claim("first token, ms, P50/P90", "456.6/576.7, 96.1/152.2", first, "The same prompt is read before the first token."),
        Claim("between tokens, ms", "78.5/151.6, 35.2/92.0", between),
        Claim("messages an answer", "23.24 to 28.77", messages, "Evidence comes unasked, and seldom needs a question."),
    ]


def _pair(seconds: Sequence[float]) -> str:
    return "/".join(f"{1000 * (quantile(seconds, percent) or 0.0):.1f}" for percent in (50, 90))


def _machines(report: Report) -> list[Claim]:
    found = []
    for task, paper in (("nq", "1.66 and 1.36 times"), ("wikitext", "2.27 and 1.85 times")):
        timed = [report.timed_rows(task, link) for link in (NATIVE, DELAYED)]
        slow = [report.rows(task, link, slow_device=True) for link in (NATIVE, DELAYED)]
        ours, modelled = (" and ".join(_times(rows["concord"], rows["dragon"]) for rows in pairs) for pairs in (timed, slow))
        read = " and ".join(times(rows["concord"].decoding_per_s, rows["dragon"].decoding_per_s) for rows in timed)
        sizes = ", ".join(f"{rows['concord'].bytes.mean:.0f}" for rows in timed)
        here = (
            f"As two processes in real time {ours} times, once the prompt is read {read}; {sizes} bytes a token. With a device "
            f"like the paper's, in virtual time, {modelled}"
        )
        why = "The device's own pass is what a token waits for." if task == "nq" else ""
        found.append(Claim(f"two machines, {task}: native, delayed", paper, here, why))
    return found


def _diagnostics(report: Report) -> list[Claim]:
    concord, fast, dense = (report.figures("nq", LINK, name) for name in ("concord", FAST, "drdg-tw"))
    alone = concord.share(lambda step: not step.evidence)
    late = concord.share(lambda step: step.kind is Kind.LOCAL)
    changed = concord.share(lambda step: step.kind is Kind.CHANGED, consulted)
    forced = concord.share(lambda step: step.everything, consulted)
    wrong = "-" if concord.different is None else spread(concord.different, ".2%")
    fast_wrong = "-" if fast.different is None else spread(fast.different, ".2%")
    same = 1 - dense.share(lambda step: step.kind is Kind.CHANGED).mean
    return [
        Claim("committed without the cloud", "21.66 %", f"{alone.mean:.1%}, of it {late.mean:.1%} of all after a wait in vain"),
        Claim("changed, of consulted steps", "22.29 %", f"{changed.mean:.1%}"),
        Claim(
            "certificate",
            "99.98 % succeed, 0.017 % are forced",
            f"{concord.share(at_once, consulted).mean:.2%} at once, {forced.mean:.3%} forced",
        ),
        Claim("local is dense", "in most steps", f"in {same:.1%}"),
        Claim(
            "tokens that are not the dense ones",
            "not said; those that time out may be",
            f"{wrong}; with half the gate {fast_wrong}",
            "Counted against the dense mixture behind the same answer.",
        ),
    ]
