"""What X-CoSD says in numbers and sentences, and what is found here, with the reason where they differ.

Where a sentence says that one thing is more than another, intervals decide it, against every baseline that the sentence names.
"""

from collections.abc import Sequence

from antiphon.methods import find
from antiphon_lab.papers.pages import Claim, bits, holds, times
from antiphon_lab.papers.xcosd import paper
from antiphon_lab.papers.xcosd.entrants import ASKED, CHAIN, CLOUD, LITERAL, TREE
from antiphon_lab.papers.xcosd.ratios import DOWN, NAMED_RATE, RATE, SPEED, TRIP, UP
from antiphon_lab.papers.xcosd.run import Report
from antiphon_lab.stats.bootstrap import TOO_FEW
from antiphon_lab.stats.intervals import Mean

ENOUGH = 100
"""Questions of a task from which on a difference of scores, or none, is a finding."""


def claims(report: Report) -> list[Claim]:
    """Of quality, bits, speed and latency."""
    return [*_about_quality(report), *_about_bits(report), *_about_speed(report), _baseline(report), _about_latency(report)]


def _about_quality(report: Report) -> list[Claim]:
    return [
        Claim(
            "quality",
            "X-CoSD and X-CoSD-E have the quality of the server LLM.",
            f"Exact by proof, and by enumeration in the tests. By scores: {_apart(report, exact=True)}",
        ),
        Claim("lossy methods", "Lossy baselines are unstable or degraded.", f"By scores: {_apart(report, exact=False)}"),
    ]


def _apart(report: Report, *, exact: bool) -> str:
    intervals = [
        score.interval
        for quality in report.quality
        if quality.questions >= ENOUGH and find(quality.name.partition(",")[0]).exact == exact
        for score in quality.scores
        if score.interval is not None
    ]
    if not intervals:
        most = max(report.questions.values())
        return f"too few, {most} questions of a task at most; from {ENOUGH} on a difference, or none, is a finding"
    apart = sum(not low <= 0 <= high for low, high in intervals)
    return f"{apart} of {len(intervals)} differ from those of `cloud` by more than chance"


def _about_bits(report: Report) -> list[Claim]:
    down = {name: report.load(name).down.mean for name in ("dssd", "xcosd", "xcosd-e", LITERAL)}
    up = {name: report.load(name).up.mean for name in ("dsd", "u-hlm", "dssd")}
    less, again = (report.ratio(DOWN, *pair) for pair in (("dssd", "xcosd"), ("xcosd", "xcosd-e")))
    more = [report.ratio(UP, name, "dssd") for name in ("dsd", "u-hlm")]
    cloud, common = report.vocabularies
    return [
        Claim(
            "downlink",
            "X-CoSD sends much less down than Naive.",
            f"{_say(holds([less]))}: {bits(down['xcosd'])} bits a token against {bits(down['dssd'])}, {times(less)} times less",
            f"The common vocabulary is {common / cloud:.1%} of the cloud's {cloud:,} tokens; the paper's are below 20 % too.",
        ),
        Claim(
            "downlink",
            f"X-CoSD-E sends less again: {paper.BITS} ({paper.SECOND_HAND}).",
            f"{_say(holds([again]))}: {bits(down[LITERAL])} bits a token with 20 candidates a message, drawn as in the paper, "
            f"{bits(down['xcosd-e'])} with as many as pay",
            "About 1/TV candidates are needed, a few; 16 bits for a probability where the paper counts 32.",
        ),
        Claim(
            "uplink",
            "UL and U-HLM have a large uplink.",
            f"{_say(holds(more))}: {bits(up['dsd'])} and {bits(up['u-hlm'])} bits a token, where X-CoSD's methods have "
            f"{bits(up['dssd'])}",
        ),
    ]


def _about_speed(report: Report) -> list[Claim]:
    rates = [rate for rate, _ in report.throughput[0].points if rate >= NAMED_RATE]
    named = [report.ratio(SPEED, name, other, x) for name in ("xcosd", "xcosd-e") for other in ("cloud", "dssd") for x in rates]
    _, common = report.vocabularies
    depends = {name: report.ratio(RATE, name, name, rates[-1]) for name in ("xcosd-e", "xcosd")}
    return [
        _speeds(report),
        Claim(
            "throughput",
            "X-CoSD and X-CoSD-E are faster than the server LLM and Naive over the tested downlink rates "
            f"({paper.LINK}, {paper.SECOND_HAND}).",
            f"{_say(holds(named))}. At 100 Mbit/s {_against(report, 'xcosd', ('cloud', 'dssd'))}; "
            f"{_against(report, 'xcosd-e', ('cloud', 'dssd'))}. The least of all: {times(_least(named))}",
        ),
        Claim(
            "rates",
            "X-CoSD-E hardly depends on the downlink, X-CoSD more.",
            f"From {report.throughput[0].points[0][0]:g} to {rates[-1]:g} Mbit/s {times(depends['xcosd-e'])} times as fast, "
            f"against {times(depends['xcosd'])}",
        ),
        Claim(
            "U-HLM",
            "U-HLM has a high throughput, but is not lossless.",
            f"{report.speed('u-hlm').mean:.1f} tokens/s, and other answers than the cloud's",
            f"An uncertain draft sends a whole distribution, {16e-6 * common:.2f} Mbit, which takes {16e-3 * common / 30:.0f} "
            "ms at 30 Mbit/s. How often that is depends on the small model; what it is certain of stands, rightly or not.",
        ),
        Claim(
            "ours",
            "(Not in the paper.) Coupled drafting needs no probabilities on the wire.",
            f"At {NAMED_RATE:g} Mbit/s {_against(report, CHAIN.name, ('cloud',))}; "
            f"{_against(report, TREE.name, ('cloud',))}. `coupled` sends {bits(report.load(CHAIN.name).up.mean)} bits a "
            f"token up and {bits(report.load(CHAIN.name).down.mean)} down",
        ),
    ]


def _speeds(report: Report) -> Claim:
    same = report.settings.temperature == paper.TEMPERATURE
    found = ", ".join(f"{report.speed(name).mean:.1f} {called}" for name, called in _CALLED.items())
    why = f"{report.load('xcosd-e').tokens_a_round:.2f} tokens a round with these models and two drafts. " + (
        "Neither acceptance nor times of a pass are known of the paper."
        if same
        else f"At temperature {report.settings.temperature:g}, so not comparable: run it at {paper.TEMPERATURE:g}."
    )
    return Claim("throughput", f"{paper.SPEEDS} ({paper.SECOND_HAND}).", f"{found}", why)


_CALLED = {"xcosd-e": "tokens/s for X-CoSD-E", "dssd": "Naive", "cloud": "the cloud alone"}


def _against(report: Report, name: str, others: Sequence[str]) -> str:
    found = " and ".join(f"{times(report.ratio(SPEED, name, other))} times `{other}`" for other in others)
    return f"`{name}` is {found}"


def _least(ratios: Sequence[Mean]) -> Mean:
    return min(ratios, key=lambda mean: mean.interval[0] if mean.interval else mean.mean)


def _say(verdict: str) -> str:
    return {"yes": "So it is", "no": "Not so", TOO_FEW: f"Not decided, {TOO_FEW}"}.get(verdict, "Not decided by these answers")


def _baseline(report: Report) -> Claim:
    far = {curve.name: curve.points for curve in report.round_trips}
    streamed, asked = (report.speed(name).mean for name in (CLOUD.name, ASKED.name))
    trip = far[CLOUD.name][-1][0]
    behind = ", ".join(f"{x:g} ms {times(report.ratio(TRIP, 'xcosd-e', CLOUD.name, x))}" for x, _ in far[CLOUD.name])
    return Claim(
        "baseline",
        "The server LLM's throughput does not depend on the downlink.",
        f"Streamed {streamed:.1f}, paying a trip a token {asked:.1f} tokens/s: on the paper's link, which has rates and no "
        "delay, the two are the same",
        f"So its baseline is as good as streamed, and is fair. With {trip:g} ms of round trip they are "
        f"{far[CLOUD.name][-1][1].mean:.1f} and {far[ASKED.name][-1][1].mean:.1f}: every method that waits for a verdict a "
        f"round loses, and the stream does not. `xcosd-e` over the stream, by round trip: {behind}.",
    )


def _about_latency(report: Report) -> Claim:
    means = {latency.name: latency.mean.mean for latency in report.latencies}
    pairs = [("xcosd-e", "xcosd"), *((name, other) for name in ("xcosd-e", "xcosd") for other in ("dssd", "dsd", "cloud"))]
    ratios = [report.ratio(SPEED, *pair) for pair in pairs]
    return Claim(
        "latency",
        "Latency a token: X-CoSD-E below X-CoSD, and both below the lossless baselines (Naive, UL, the server LLM).",
        f"{_say(holds(ratios))}: {means['xcosd-e']:.1f}, {means['xcosd']:.1f}, Naive {means['dssd']:.1f}, UL "
        f"{means['dsd']:.1f}, the cloud alone {means['cloud']:.1f} ms at {NAMED_RATE:g} Mbit/s; the nearest two "
        f"{times(_least(ratios))} times",
    )
