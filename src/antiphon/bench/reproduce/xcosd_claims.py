"""What X-CoSD says in numbers and sentences, and what is found here, with the reason where they differ."""

from antiphon.bench.reproduce.entrants import ASKED, CLOUD
from antiphon.bench.reproduce.pages import Claim, bits
from antiphon.bench.reproduce.xcosd import NAMED_RATE, Report
from antiphon.methods import find


def claims(report: Report) -> list[Claim]:
    """Of quality, bits, speed and latency."""
    return [*_about_quality(report), *_about_bits(report), *_about_speed(report), _baseline(report), *_about_latency(report)]


ENOUGH = 10
"""Questions from which on the interval of a score's difference says something."""


def _about_quality(report: Report) -> list[Claim]:
    few = f"Only tasks of {ENOUGH} questions or more are counted, and small differences take hundreds."
    return [
        Claim(
            "quality",
            "X-CoSD and X-CoSD-E have the quality of the server LLM.",
            f"Exact by proof, and by enumeration in the tests. Of exact methods, {_apart(report, exact=True)}",
            few,
        ),
        Claim("lossy methods", "Lossy baselines are unstable or degraded.", f"Of them, {_apart(report, exact=False)}", few),
    ]


def _apart(report: Report, *, exact: bool) -> str:
    intervals = [
        score.interval
        for quality in report.quality
        if quality.questions >= ENOUGH and find(quality.name.partition(",")[0]).exact == exact
        for score in quality.scores
        if score.interval is not None
    ]
    apart = sum(not low <= 0 <= high for low, high in intervals)
    return f"{apart} of {len(intervals)} scores differ from `cloud` by more than chance"


def _about_bits(report: Report) -> list[Claim]:
    down = {name: report.load(name).down.mean for name in ("dssd", "xcosd", "xcosd-e", "xcosd-e, k = 20")}
    up = {name: report.load(name).up.mean for name in ("dsd", "u-hlm", "dssd")}
    cloud, common = report.vocabularies
    return [
        Claim(
            "downlink",
            "X-CoSD sends much less down than Naive.",
            f"{bits(down['xcosd'])} bits a token against {bits(down['dssd'])}: {down['dssd'] / down['xcosd']:.1f} times less",
            f"The common vocabulary is {common / cloud:.1%} of the cloud's {cloud:,} tokens; the paper's are below 20 % too.",
        ),
        Claim(
            "downlink",
            "X-CoSD-E sends less again.",
            f"{bits(down['xcosd-e, k = 20'])} bits with 20 candidates a message as in the paper, {bits(down['xcosd-e'])} "
            "with as many as pay",
            "About 1/TV candidates are needed, a few; 16 bits for a probability where the paper counts 32.",
        ),
        Claim(
            "uplink",
            "UL and U-HLM have a large uplink.",
            f"{bits(up['dsd'])} and {bits(up['u-hlm'])} bits a token, where X-CoSD's methods have {bits(up['dssd'])}",
        ),
    ]


def _about_speed(report: Report) -> list[Claim]:
    cloud, naive, plain, enhanced = (report.speed(name).mean for name in ("cloud", "dssd", "xcosd", "xcosd-e"))
    rates = [rate for rate, _ in report.throughput[0].points if rate >= NAMED_RATE]
    above = all(
        report.speed(name, rate).mean > report.speed("cloud", rate).mean for name in ("xcosd", "xcosd-e") for rate in rates
    )
    _, common = report.vocabularies
    spans = {name: _span(report, name) for name in ("xcosd", "xcosd-e")}
    return [
        Claim(
            "throughput",
            "At 100 Mbit/s, X-CoSD-E writes about 45 tokens/s and the server LLM 30 (read off the figure): 1.5 times.",
            f"{enhanced:.1f} and {cloud:.1f}: {enhanced / cloud:.2f} times",
            f"{report.load('xcosd-e').tokens_a_round:.2f} tokens a round with these models and two drafts; the paper does not "
            "say its acceptance or its times of a pass.",
        ),
        Claim(
            "throughput",
            "X-CoSD and X-CoSD-E are faster than the server LLM and Naive from 100 to 300 Mbit/s.",
            f"{'So they are' if above and plain > naive else 'Not everywhere'}: {plain:.1f} and {enhanced:.1f} tokens/s at "
            f"100, Naive {naive:.1f}",
        ),
        Claim(
            "rates",
            "X-CoSD-E hardly depends on the downlink, X-CoSD more.",
            f"From {report.throughput[0].points[0][0]:g} to {rates[-1]:g} Mbit/s: {spans['xcosd-e']} against {spans['xcosd']}",
        ),
        Claim(
            "U-HLM",
            "U-HLM has a high throughput, but is not lossless.",
            f"{report.speed('u-hlm').mean:.1f} tokens/s, and other answers than the cloud's",
            f"An uncertain draft sends a whole law, {16e-6 * common:.2f} Mbit, which takes {16e-3 * common / 30:.0f} ms at 30 "
            "Mbit/s. How often that is depends on the small model; what it is certain of stands, rightly or not.",
        ),
        Claim(
            "ours",
            "(Not in the paper.) Coupled drafting needs no probabilities on the wire.",
            f"`coupled` {report.speed('coupled').mean:.1f}, `coupled-tree` {report.speed('coupled-tree').mean:.1f} tokens/s at "
            f"{NAMED_RATE:g} Mbit/s, {bits(report.load('coupled').up.mean)} bits a token up and "
            f"{bits(report.load('coupled').down.mean)} down",
        ),
    ]


def _span(report: Report, name: str) -> str:
    curve = next(curve for curve in report.throughput if curve.name == name)
    return f"{curve.points[0][1].mean:.1f} to {curve.points[-1][1].mean:.1f}"


def _baseline(report: Report) -> Claim:
    far = {curve.name: curve.points[-1] for curve in report.round_trips}
    streamed, asked = (report.speed(name).mean for name in (CLOUD.name, ASKED.name))
    trip = far[CLOUD.name][0]
    return Claim(
        "baseline",
        "The server LLM's throughput does not depend on the downlink.",
        f"Streamed {streamed:.1f}, paying a trip a token {asked:.1f} tokens/s: on the paper's link, which has rates and no "
        "delay, the two are the same",
        f"So its baseline is as good as streamed, and is fair. With {trip:g} ms of round trip they are "
        f"{far[CLOUD.name][1].mean:.1f} and {far[ASKED.name][1].mean:.1f}: every method that waits for a verdict a round "
        "loses, and the stream does not.",
    )


def _about_latency(report: Report) -> list[Claim]:
    means = {latency.name: latency.mean.mean for latency in report.latencies}
    order = means["xcosd-e"] < means["xcosd"] < means["dssd"]
    return [
        Claim(
            "latency",
            "Latency a token: X-CoSD-E below X-CoSD below the lossless baselines.",
            f"{'So it is' if order else 'Not in this order'}: {means['xcosd-e']:.1f}, {means['xcosd']:.1f}, Naive "
            f"{means['dssd']:.1f}, UL {means['dsd']:.1f}, the cloud alone {means['cloud']:.1f} ms at {NAMED_RATE:g} Mbit/s",
        )
    ]
