"""One consultation, from the first evidence to the token: certificate, questions, chunks, everything (METHODS 4; CONCORD IV-C).

A generator: it yields what to ask of which end and is sent the replies, so whoever drives it only moves messages.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from antiphon.core.mixture.certificate import Certificate
from antiphon.core.mixture.scores import Bound, Codes, Report
from antiphon.options import option, require


@dataclass(frozen=True, slots=True)
class ConsultOptions:
    """How evidence is asked for. Any values give the same token; they cost bytes and trips.

    Raises UsageError for a value that does not fit.
    """

    first: int = option(8, "K0: scores in the evidence of a step.")
    ids_per_question: int = option(4, "k: tokens in a question for more scores.")
    questions: int = option(2, "R_max: questions a step at most, then chunks; 0 asks for no token by its id.")
    epsilon: float = option(0.05, "epsilon: share of the ambiguous local mass that a question may leave out.")
    delta: float = option(0.0, "delta: the certificate's margin, in log-probability.")
    chunk: int = option(64, "Scores in a chunk.")
    chunks: int = option(4, "Chunks a step at most, then all scores.")
    bound: Bound = option("next", "b, of scores not sent: the next one, or the global maximum.")
    certificate: Literal["both", "upper"] = option("both", "both: bounds from below settle too; upper: as in the paper.")

    def __post_init__(self) -> None:
        for name, least, most in (
            ("first", 1, 256),
            ("ids_per_question", 1, 256),
            ("questions", 0, 64),
            ("chunk", 1, 4096),
            ("chunks", 0, 64),
        ):
            value = getattr(self, name)
            require(least <= value <= most, f"{name} must be {least} to {most}, not {value}")
        require(0 < self.epsilon < 1, f"epsilon must be above 0 and below 1, not {self.epsilon}")
        require(0 <= self.delta <= 10, f"delta must be between 0 and 10, not {self.delta}")
        require(self.bound in ("next", "global"), f"bound must be next or global, not {self.bound!r}")
        require(self.certificate in ("both", "upper"), f"certificate must be both or upper, not {self.certificate!r}")


@dataclass(frozen=True, slots=True)
class AskScores:
    """Send the scores of these tokens."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AskChunk:
    """Send the next strongest scores."""

    count: int


@dataclass(frozen=True, slots=True)
class AskAll:
    """Send every score, as codes by token id."""


Question: TypeAlias = AskScores | AskChunk | AskAll
Questions: TypeAlias = Mapping[int, Question]
"""What to ask, by remote end; all of them at once."""
Replies: TypeAlias = Mapping[int, Report | Codes]
"""What came back, by remote end: a `Report`, or all codes after AskAll. An end that is missing is not waited for any more."""


@dataclass(slots=True)
class Effort:
    """What a consultation took: questions, the ids in them, chunks, and whether everything was sent at last."""

    questions: int = 0
    ids: int = 0
    chunks: int = 0
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The dense token of the ends that were there to the last, those ends, and what it took."""

    token: int
    ends: tuple[int, ...]
    effort: Effort


def consult(certificate: Certificate, options: ConsultOptions) -> Generator[Questions, Replies, Settled]:
    """Settle the token of a step. The first evidence of each end is in the certificate, or the end was dropped.

    Raises ValueError if a reply is no answer to the question, or does not fit the vocabulary.
    """
    effort = Effort()
    while (token := certificate.settled(options.delta)) is None:
        questions = _next_questions(certificate, options, effort)
        replies = yield questions
        # A loop that ends: every turn makes scores known, drops an end, or uses up one of the questions and chunks.
        for number in questions.keys() - replies.keys():
            certificate.drop(number)
        if effort.everything:
            token = certificate.dense({number: _codes(reply) for number, reply in replies.items()})
            break
        for number, reply in replies.items():
            certificate.absorb(number, _report(reply))
    return Settled(token, tuple(certificate.ends), effort)


def _next_questions(certificate: Certificate, options: ConsultOptions, effort: Effort) -> Questions:
    if effort.questions < options.questions:
        wanted = certificate.wanted(options.ids_per_question, options.epsilon, options.delta)
        # None is wanted where what is ambiguous has no mass here at all: then only the remote end can say which tokens matter.
        if wanted:
            effort.questions, effort.ids = effort.questions + 1, effort.ids + len(wanted)
            missing = {number: tuple(certificate.unknown(number, wanted)) for number in certificate.ends}
            return {number: AskScores(tokens) for number, tokens in missing.items() if tokens}
    if effort.chunks < options.chunks:
        effort.chunks += 1
        return dict.fromkeys(certificate.ends, AskChunk(options.chunk))
    effort.everything = True
    return dict.fromkeys(certificate.ends, AskAll())


def _report(reply: Report | Codes) -> Report:
    if not isinstance(reply, Report):
        raise ValueError("all scores came where some were asked for")
    return reply


def _codes(reply: Report | Codes) -> Codes:
    if isinstance(reply, Report):
        raise ValueError("some scores came where all were asked for")
    return reply
