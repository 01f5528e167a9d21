"""What TSLT says in numbers and sentences, and what is found here, with the reason where they differ."""

from antiphon.bench.reproduce.cuts import Cuts
from antiphon.bench.reproduce.pages import Claim, share
from antiphon.bench.reproduce.tslt import DRAFTS, EXPANSION, LAWS, Report, Speed


def claims(report: Report) -> list[Claim]:
    """The paper's sentences with numbers, and ours."""
    return [*_about_mass(report.cuts), *_about_acceptance(report.cuts), *_about_speed(report)]


def _about_mass(cuts: Cuts) -> list[Claim]:
    sharper = "Another model on another text: the sharper the small model's laws are, the more a few tokens hold."
    found = []
    for kept, portion, about, says in (
        (3200, 0.1, "mass, 10 %", "Retained mass at K = 3,200, 10 % of the vocabulary: almost unchanged."),
        (320, 0.01, "mass, 1 %", "Retained mass at K = 320, 1 %: about .85."),
        (32, 0.001, "mass, 0.1 %", "At K = 32, 0.1 %, what is cut off becomes significant."),
    ):
        same = cuts.share(portion)
        there = [cut for cut in (cuts.at(kept),) if cut]
        numbers = [f"{share(cut.mass.mean)} at K = {cut.kept:,}" for cut in dict.fromkeys([*there, same])]
        found.append(Claim(about, says, "; ".join(numbers), sharper if kept == 320 else ""))
    return found


def _about_acceptance(cuts: Cuts) -> list[Claim]:
    found = []
    for kept, says in (
        (3200, "Acceptance from K = 32,000 to 3,200: only a minor decline."),
        (320, "With 1 % of the logits: largely unaffected."),
        (32, "At K = 32: drops noticeably."),
    ):
        cut = cuts.at(kept)
        if cut is not None:
            found.append(Claim("acceptance", says, f"{cut.lost.mean:.1%} of the acceptance is lost at K = {kept:,}"))
    one, two = cuts.full.single.mean, cuts.full.with_replacement.mean
    higher = all(cut.accepted.with_replacement.mean > cut.accepted.single.mean for cut in cuts.cuts)
    found.append(
        Claim(
            "candidates",
            "Several candidates are accepted more often than one, at every K.",
            f"{'So it is' if higher else 'Not at every K'}: {share(two)} against {share(one)} with whole laws",
            f"Drawn without replacement, which the paper does not try, it is {share(cuts.full.without_replacement.mean)}.",
        )
    )
    excess = max(cut.excess for cut in cuts.cuts)
    held = "holds at every position and K" if excess <= 1e-9 else f"FAILS by {excess:.1e}"
    found.append(
        Claim("theorem 1", "Acceptance moves by no more than the mass that is cut off.", f"It {held} (with the rounding).")
    )
    return found


def _about_speed(report: Report) -> list[Claim]:
    slow, fast = (report.speeds[0].points[place].rate for place in (0, -1))
    found = []
    for tree, name in ((False, "One candidate"), (True, "Several candidates")):
        whole, some = (report.speed(kind, tree=tree) for kind in ("whole laws", "k = 320"))
        numbers = ", ".join(f"{_at(some, rate)} against {_at(whole, rate)} at {rate:g} Mbit/s" for rate in (slow, fast))
        found.append(
            Claim(
                "speed-up",
                f"{name}: truncation speeds up, most where the uplink is slow.",
                f"K = 320 against whole laws: {numbers}",
            )
        )
    extreme, usual = (report.speed(kind, tree=False) for kind in ("k = 32", "k = 320"))
    lost = report.cuts.at(32)
    found.append(
        Claim(
            "extreme K",
            "At K = 32 the speed-up decreases, most at high rates, for more drafts are rejected.",
            f"One candidate at {fast:g} Mbit/s: {_at(extreme, fast)} at K = 32, {_at(usual, fast)} at K = 320; by the closed "
            f"form {_form(extreme, fast)} and {_form(usual, fast)}",
            f"Here K = 32 costs {lost.lost.mean:.1%} of the acceptance, less than the spread of a few short answers."
            if lost
            else "",
        )
    )
    better = [_mean(report.speed("k = 320", tree=True), rate) > _mean(usual, rate) for rate in (slow, fast)]
    found.append(
        Claim(
            "trees",
            "Several candidates are always faster than one.",
            f"At K = 320 {_yes(better[0])} at {slow:g} Mbit/s, {_yes(better[1])} at {fast:g} Mbit/s",
            f"A tree of {EXPANSION} sends {LAWS} laws, a chain {DRAFTS}: where laws take longer than passes, it loses.",
        )
    )
    return found


def _yes(better: bool) -> str:
    return "yes" if better else "no"


def _mean(speed: Speed, rate: float) -> float:
    return speed.at(rate).speed_up.mean


def _at(speed: Speed, rate: float) -> str:
    return f"{_mean(speed, rate):.2f}"


def _form(speed: Speed, rate: float) -> str:
    form = speed.at(rate).form
    return "" if form is None else f"{form:.2f}"
