"""What TSLT says in numbers and sentences, and what is found here, with the reason where they differ; intervals decide."""

from antiphon_lab.papers.pages import Claim, holds, interval, share, times
from antiphon_lab.papers.tslt.cuts import Cut, Cuts
from antiphon_lab.papers.tslt.run import DRAFTS, EXPANSION, LAWS, Report

DECIDED = {"yes": "so it is", "no": "not so", "not decided": "not decided by these answers"}
CLOSED = 1e-9
"""What rounding of floats may add to a bound."""


def claims(report: Report) -> list[Claim]:
    """The paper's sentences with numbers, and ours."""
    cuts = report.truncation
    return [*_about_mass(cuts), _about_nuclei(cuts), *_about_acceptance(cuts), *_theorems(cuts), *_about_speed(report)]


def _about_mass(cuts: Cuts) -> list[Claim]:
    sharper = "Another model on another text: the sharper the small model's distributions are, the more a few tokens hold."
    found = []
    for kept, portion, about, says in (
        (3200, 0.1, "mass, 10 %", "Retained mass at K = 3,200, 10 % of the vocabulary: almost unchanged."),
        (320, 0.01, "mass, 1 %", "Retained mass at K = 320, 1 %: about .85."),
        (32, 0.001, "mass, 0.1 %", "At K = 32, 0.1 %, what is cut off becomes significant."),
    ):
        there = [cut for cut in (cuts.at(kept),) if cut]
        numbers = [
            f"{interval(cut.mass, share)} at K = {cut.kept:,.0f}" for cut in dict.fromkeys([*there, cuts.share(portion)])
        ]
        found.append(Claim(about, says, "; ".join(numbers), sharper if kept == 320 else ""))
    return found


def _about_nuclei(cuts: Cuts) -> Claim:
    numbers = ", ".join(f"{cut.name} keeps {cut.kept:,.0f} tokens and loses {cut.lost.mean:.1%}" for cut in cuts.nuclei)
    return Claim(
        "nucleus",
        "The smallest set above a mass may be kept instead of K tokens (3.1); the paper does not measure it.",
        f"On average {numbers} of the acceptance.",
        "Where distributions differ in width a nucleus is wide only where it must be.",
    )


def _about_acceptance(cuts: Cuts) -> list[Claim]:
    found = []
    for kept, says in (
        (3200, "Acceptance from K = 32,000 to 3,200: only a minor decline."),
        (320, "With 1 % of the logits: largely unaffected."),
        (32, "At K = 32: drops noticeably."),
    ):
        cut = cuts.at(kept)
        if cut is not None:
            lost = interval(cut.lost, "{:.1%}".format)
            found.append(Claim("acceptance", says, f"{lost} of the acceptance is lost at K = {kept:,}"))
    one, two = cuts.full.single.mean, cuts.full.with_replacement.mean
    without = cuts.full.without_replacement
    verdict = holds([cut.gained for cut in cuts.cuts])
    found.append(
        Claim(
            "candidates",
            "Several candidates are accepted more often than one, at every K.",
            f"At every K {DECIDED.get(verdict, verdict)}: {share(two)} against {share(one)} with whole distributions; the "
            f"least gain is {times(min((cut.gained for cut in cuts.cuts), key=lambda gain: gain.mean))} times",
            f"Drawn without replacement, which the paper does not try, it is {share(without.mean)}." if without else "",
        )
    )
    return found


def _theorems(cuts: Cuts) -> list[Claim]:
    usual = cuts.at(320) or cuts.cuts[-1]
    return [
        Claim(
            "theorem 1",
            "Acceptance moves by no more than the mass that is cut off.",
            _held(max(cut.excess for cut in cuts.all), cuts),
        ),
        Claim(
            "theorem 2",
            "So with several candidates: that of the j-th, where those before it fell, moves by at most a sum over them of "
            "products of 2 / Z, and 1, times that mass.",
            f"For the second candidate: {_held(max(cut.second_excess for cut in cuts.all), cuts)} {_slack(usual)}",
            "Z is the mass of the residual, mostly below 1/2, so the bound is loose.",
        ),
    ]


def _held(excess: float, cuts: Cuts) -> str:
    held = "it holds" if excess <= CLOSED else f"it FAILS by {excess:.1e}"
    return f"At all {cuts.positions} positions and {len(cuts.all)} truncations {held} (with the rounding)."


def _slack(cut: Cut) -> str:
    return f"At {cut.name} it moves by {cut.second_moved.mean:.4f} on average, where it may by {cut.second_bound.mean:.3f}."


def _about_speed(report: Report) -> list[Claim]:
    slow, fast = (report.speeds[0].points[place].rate for place in (0, -1))
    found = []
    for shape, name in (("chain", "One candidate"), ("tree", "Several candidates")):
        ratios = [report.ratio(f"{shape}, k = 320", f"{shape}, whole distributions", rate) for rate in (slow, fast)]
        numbers = " and ".join(
            f"{times(ratio)} times at {rate:g} Mbit/s" for ratio, rate in zip(ratios, (slow, fast), strict=True)
        )
        found.append(
            Claim(
                "speed-up",
                f"{name}: truncation speeds up, most where the uplink is slow.",
                f"K = 320 over whole distributions {numbers}: faster at both {DECIDED.get(holds(ratios), holds(ratios))}",
            )
        )
    return [*found, _about_extreme(report), _about_trees(report)]


def _about_extreme(report: Report) -> Claim:
    extreme, lost = report.extreme, report.truncation.at(32)
    slower = {"yes": "faster", "no": "slower"}.get(holds([extreme.speed]), holds([extreme.speed]))
    usual, few = (report.speed(kind, tree=False).at(extreme.rate).form for kind in ("k = 320", "k = 32"))
    form = f"; by the closed form {few:.2f} and {usual:.2f}" if few and usual else ""
    return Claim(
        "extreme K",
        "At K = 32 the speed-up decreases, most at high rates, for more drafts are rejected.",
        f"One candidate at {extreme.rate:g} Mbit/s, K = 32 over K = 320: {times(extreme.speed)} times, {slower}, over "
        f"{extreme.tokens[0]:,} and {extreme.tokens[1]:,} tokens of {extreme.answers} answers{form}",
        f"K = 32 costs {interval(lost.lost, '{:.1%}'.format)} of the acceptance." if lost else "",
    )


def _about_trees(report: Report) -> Claim:
    kinds = ("whole distributions", "k = 3,200", "k = 320", "k = 32")
    rates = [point.rate for point in report.speeds[0].points]
    verdict = holds([report.ratio(f"tree, {kind}", f"chain, {kind}", rate) for kind in kinds for rate in rates])
    at = {rate: times(report.ratio("tree, k = 320", "chain, k = 320", rate)) for rate in (rates[0], rates[-1])}
    return Claim(
        "trees",
        "Several candidates are always faster than one.",
        f"At every K and rate: {DECIDED.get(verdict, verdict)}. At K = 320 "
        + " and ".join(f"{ratio} times at {rate:g} Mbit/s" for rate, ratio in at.items()),
        f"A tree of {EXPANSION} sends {LAWS} distributions, a chain {DRAFTS}: where they take longer than passes, it loses.",
    )
