"""What CONCORD says in numbers and sentences, and what is found here, with the reason where they differ."""

from collections.abc import Callable

from antiphon.methods.effects import Kind
from antiphon_lab.experiments.rag.answers import Step
from antiphon_lab.experiments.rag.figures import Figures, at_once, certified, consulted, late, median_and_p90, submitted
from antiphon_lab.experiments.rag.tables import spread
from antiphon_lab.papers.concord.run import (
    DELAYED,
    FAST,
    FLAT,
    LETTER,
    LETTER_NOCOMM,
    LETTER_NOSYSTEM,
    LINK,
    LOSSY,
    NATIVE,
    RATED,
    Report,
)
from antiphon_lab.papers.pages import Claim, interval
from antiphon_lab.stats.intervals import Mean

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
        near, flat, rated = (report.rows(task, link) for link in (LINK, FLAT, RATED))
        here = (
            f"to the letter {_times(near[LETTER], near['dragon'])}, ours {_times(near['concord'], near['dragon'])} times; "
            f"without TCP's slow start {_times(flat[LETTER], flat['dragon'])} and {_times(flat['concord'], flat['dragon'])}; "
            f"ours against `drdg-tw` {_times(near['concord'], near['drdg-tw'])}; the device alone, the most that not waiting "
            f"can bring, {_times(near['crcg'], near['dragon'])}. Ours with 100 Mbit/s "
            f"{_times(rated['concord'], rated['dragon'])}"
        )
        found.append(Claim(f"CONCORD against DRAGON, {task}", paper, here, STRONGER if task == "nq" else ""))
    return [*found, _new_questions(report)]


def _new_questions(report: Report) -> Claim:
    near, flat = (report.new_rows(link) for link in (LINK, FLAT))
    pairs = (f"{_times(rows[LETTER], rows['dragon'])} and {_times(rows['concord'], rows['dragon'])}" for rows in (near, flat))
    return Claim(
        "the same, questions that nobody looked at before",
        "not said",
        "to the letter and ours {} times; without TCP's slow start {}".format(*pairs),
        "Slow start is our addition: the paper says nothing of TCP's window.",
    )


def _times(ours: Figures, theirs: Figures) -> str:
    """How many times the throughput, with its interval."""
    mean = ours.over(theirs)
    return "-" if mean is None else interval(mean, "{:.2f}".format)


def times(ours: Mean, theirs: Mean) -> str:
    """How many times as much."""
    return f"{ours.mean / theirs.mean:.2f}" if theirs.mean else "-"


def _bytes(report: Report) -> list[Claim]:
    found = []
    for task, paper in (("nq", "253,480 to 283"), ("wikitext", "243,640 to 161")):
        dragon, letter, concord = (report.figures(task, LINK, name).bytes for name in ("dragon", LETTER, "concord"))
        here = f"{dragon.mean:,.0f} to {letter.mean:,.1f} to the letter and {concord.mean:.1f} with ours, framing included"
        found.append(Claim(f"bytes a token, {task}", paper, here))
    lossy = report.figures("nq", LINK, LOSSY)
    found.append(
        Claim("bytes a token with tails cut off", "not said", f"`dragon` so, another mixture: {lossy.bytes.mean:,.0f}")
    )
    return found


def _ablation(report: Report) -> list[Claim]:
    rows = report.rows("nq", LINK)
    names = ("dragon", LETTER_NOSYSTEM, LETTER_NOCOMM, LETTER)

    def each(of: str) -> str:
        return ", ".join(_figure(rows[name], of) for name in names) + ", to the letter"

    return [
        Claim("ablation: queries/s", "DRAGON .765, NoSys 1.123, NoComm 1.083, CONCORD 1.286", each("speed"), STRONGER),
        _waiting_control(report),
        Claim("ablation: participation", "NoSys 1.000; by table II CONCORD .783", each("participation")),
        Claim("ablation: bytes a token", "256,518, 331, 4,982, 261", each("bytes")),
    ]


def _waiting_control(report: Report) -> Claim:
    near, flat = (report.rows("nq", link) for link in (LINK, FLAT))
    letter, ours = (
        [_times(rows[name], rows[base]) for rows in (near, flat)]
        for name, base in ((LETTER, LETTER_NOSYSTEM), ("concord", "concord-nosystem"))
    )
    return Claim(
        "waiting control: CONCORD against NoSys",
        "1.145 times",
        f"ours {ours[0]} times, without TCP's slow start {ours[1]}; to the letter {letter[0]} and {letter[1]}",
        "Where evidence comes ahead of the device there is little to wait for; it is late only after a change, and to the "
        "letter a timeout empties the cloud's stream, so that the next wait is a round trip longer.",
    )


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
    three = [rows[name] for name in ("dragon", LETTER, "concord")]
    first = ", ".join(median_and_p90(one.first_token_s()) for one in three)
    between = ", ".join(median_and_p90(one.between_tokens_s()) for one in three)
    messages = ", ".join(f"{one.messages.mean:.1f}" for one in three)
    return [
        Claim(
            "first token, ms, P50/P90",
            "456.6/576.7, 96.1/152.2",
            f"{first}: DRAGON, to the letter, ours",
            "The same prompt is read before the first token.",
        ),
        Claim("between tokens, ms", "78.5/151.6, 35.2/92.0", between),
        Claim("messages an answer", "23.24 to 28.77", messages, "Evidence comes unasked, and seldom needs a question."),
    ]


def _machines(report: Report) -> list[Claim]:
    found = []
    for task, paper in (("nq", "1.66 and 1.36 times"), ("wikitext", "2.27 and 1.85 times")):
        timed = [report.timed_rows(task, link) for link in (NATIVE, DELAYED)]
        ours = " and ".join(_times(rows["concord"], rows["dragon"]) for rows in timed)
        read = " and ".join(times(rows["concord"].decoding_per_s, rows["dragon"].decoding_per_s) for rows in timed)
        sizes = ", ".join(f"{rows['concord'].bytes.mean:.0f}" for rows in timed)
        here = f"As two processes in real time {ours} times, once the prompt is read {read}; {sizes} bytes a token"
        found.append(Claim(f"two machines, {task}: native, delayed", paper, here))
    return [*found, _slow_device(report)]


def _slow_device(report: Report) -> Claim:
    slow = [report.rows("nq", link, slow_device=True) for link in (NATIVE, DELAYED)]
    letter, ours = (" and ".join(_times(rows[name], rows["dragon"]) for rows in slow) for name in (LETTER, "concord"))
    return Claim(
        "the same with a device like the paper's, nq",
        "1.66 and 1.36 times",
        f"In virtual time, to the letter {letter}, ours {ours}",
        "The device's own pass is what a token waits for.",
    )


def _diagnostics(report: Report) -> list[Claim]:
    letter, concord, fast, dense = (report.figures("nq", LINK, name) for name in (LETTER, "concord", FAST, "drdg-tw"))
    wrong = ", ".join("-" if one.different is None else spread(one.different, ".2%") for one in (letter, concord, fast))
    same = 1 - dense.share(lambda step: step.kind is Kind.CHANGED).mean
    return [
        _alone(letter, concord),
        Claim("changed, of consulted steps", "22.29 %", _both(letter, concord, _changed)),
        Claim(
            "neither draft is dense: the local one is submitted",
            "algorithm 1",
            f"to the letter {letter.share(submitted, consulted).mean:.2%} of consulted steps; ours never: both ends take the "
            "dense one",
        ),
        Claim("certificate", "99.98 % succeed, 0.017 % are forced", _both(letter, concord, certified, ".2%")),
        Claim("settled by the first evidence", "not said", _both(letter, concord, at_once)),
        Claim("local is dense", "in most steps", f"in {same:.1%}"),
        Claim(
            "tokens that are not the dense ones",
            "not said; those that time out may be",
            f"to the letter, ours, with half the gate: {wrong}",
            "Counted against the dense mixture behind the same answer.",
        ),
        Claim(
            "waiting debt: the mean of \u03be - \u03c1\u03b1, at most 0",
            "a constraint",
            f"to the letter {spread(letter.debt_growth, '+.2f')}, ours {spread(concord.debt_growth, '+.2f')}",
            "Nothing in the rule enforces it: a wait cut to nothing counts as one in vain.",
        ),
    ]


def _alone(letter: Figures, concord: Figures) -> Claim:
    shares = letter.share(late).mean, concord.share(lambda step: not step.evidence).mean, concord.share(late).mean
    return Claim(
        "committed without the cloud",
        "21.66 %, all after a wait in vain",
        "to the letter {:.1%}, all after a wait in vain; ours {:.1%}, of it after a wait in vain {:.1%} of all".format(*shares),
        "Most of ours come from another mechanism, the gate: no evidence could have changed them.",
    )


def _changed(step: Step) -> bool:
    return step.kind is Kind.CHANGED


def _both(letter: Figures, concord: Figures, part: Callable[[Step], bool], form: str = ".1%") -> str:
    first, second = (one.share(part, consulted).mean for one in (letter, concord))
    return f"to the letter {first:{form}}, ours {second:{form}}"
