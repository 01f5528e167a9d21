"""A part of the page of `antiphon-lab reproduce concord`: how tokens were decided (CONCORD, table II)."""

from collections.abc import Callable, Iterator, Mapping

from antiphon.methods.effects import Kind
from antiphon_lab.experiments.rag.answers import Step
from antiphon_lab.experiments.rag.figures import Figures, at_once, certified, consulted, late, submitted
from antiphon_lab.experiments.rag.page import decisions, front
from antiphon_lab.experiments.rag.tables import spread
from antiphon_lab.papers.concord import paper
from antiphon_lab.papers.concord.run import LETTER, LINK, WAITS, Report
from antiphon_lab.report.charts import Axis, Bar, Series, bars, lines
from antiphon_lab.report.page import Html, figure, note, side_by_side, table


def diagnostics(report: Report) -> Iterator[Html]:
    """Table II, debt over time, and what settled consulted steps."""
    rows = {name: report.figures("nq", LINK, name) for name in ("dragon", "concord", "concord-nosystem", LETTER)}
    pair = {name: rows[name] for name in (LETTER, "concord")}
    debts = [
        Series(name, tuple((place + 1.0, debt) for place, debt in enumerate(one.debts())), colour)
        for colour, (name, one) in enumerate(pair.items())
    ]
    yield _decided(pair)
    yield note(
        "In the paper, and to the letter, a token is committed without the cloud only after a wait in vain. Most of those of "
        "our `concord` come from another mechanism, the gate, which knows them to be the dense ones."
    )
    shown = {name: one for name, one in report.rows("nq", LINK).items() if name not in WAITS}
    yield side_by_side(
        figure(decisions(rows), "Where tokens came from", "Shares of all tokens."),
        figure(_supplements(rows), "What settled consulted steps", "Questions for ids, chunks, or all scores."),
        figure(lines(debts, Axis("token of the answer"), Axis("waiting debt")), "Debt over time", "On average."),
        figure(front(shown), "Speed against tokens that are not the dense mixture's"),
    )


def _decided(rows: Mapping[str, Figures]) -> Html:
    """Table II, in per cent, with what of it is by our gate."""
    shares: tuple[tuple[str, str, Callable[[Figures], str]], ...] = (
        ("committed without evidence", paper.ALONE, lambda one: _percent(one, lambda step: not step.evidence)),
        ("of it certain, by our gate", "", lambda one: _percent(one, lambda step: step.kind is Kind.CERTAIN)),
        ("of it after a wait in vain", "", lambda one: _percent(one, late)),
        ("of consulted: not the device's own", paper.CHANGED, lambda one: _percent(one, _changed, consulted)),
        ("of consulted: neither draft, the device's own submitted", "", lambda one: _percent(one, submitted, consulted)),
        ("of consulted: settled by a certificate", paper.CERTIFIED, lambda one: _percent(one, certified, consulted)),
        ("of consulted: at once", "", lambda one: _percent(one, at_once, consulted)),
        ("of consulted: forced completion", paper.FORCED, lambda one: _percent(one, lambda step: step.everything, consulted)),
    )
    found = [[name, theirs, *(ours(one) for one in rows.values())] for name, theirs, ours in shares]
    return table(["% of tokens", "the paper", *rows], found)


def _changed(step: Step) -> bool:
    return step.kind is Kind.CHANGED


def _percent(one: Figures, part: Callable[[Step], bool], of: Callable[[Step], bool] = lambda step: True) -> str:
    return spread(one.share(part, of), ".2f", 100)


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
