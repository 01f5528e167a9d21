"""Scores of a step on the wire: reports, all of them, and the questions for more (METHODS 4)."""

from antiphon.core.mixture.consult import AskAll, AskChunk, AskScores, Question
from antiphon.core.mixture.scores import ZERO, Codes, Report
from antiphon.errors import ProtocolError
from antiphon.wire.packing import Reader, Writer

COUNT_BITS = 13
"""Of a count of scores: at most 4,096 at once."""
CODE_BITS = 16


class ScoreCodec:
    """Writes and reads scores of a vocabulary of `size` tokens, whose ids take `bits` bits."""

    def __init__(self, size: int, bits: int) -> None:
        self._size, self._bits = size, bits

    def report(self, report: Report) -> bytes:
        """A count, then a token and its code each, then the bound."""
        writer = Writer()
        writer.number(len(report.scores), COUNT_BITS)
        for token, code in report.scores.items():
            writer.number(token, self._bits)
            writer.number(code, CODE_BITS)
        writer.number(report.bound, CODE_BITS)
        return writer.finish()

    def read_report(self, payload: bytes) -> Report:
        """Raises ProtocolError for a token out of range or listed twice."""
        reader = Reader(payload)
        scores: dict[int, int] = {}
        count = reader.number(COUNT_BITS, 1 << COUNT_BITS, "the count of scores")
        for _ in range(count):
            token = self._token(reader)
            scores[token] = reader.number(CODE_BITS, 1 << CODE_BITS, "a score")
        bound = reader.number(CODE_BITS, 1 << CODE_BITS, "the bound")
        reader.finish()
        # A dict took the later of two scores in silence; which one counts must not be the reader's choice.
        if len(scores) < count:
            raise ProtocolError("a token's score was sent twice", "out-of-range")
        return Report(scores, bound)

    def everything(self, codes: Codes, draft: int | None = None) -> bytes:
        """All codes, or those above 0 with their tokens, after the sender's own draft where it is wanted."""
        writer = Writer()
        if draft is not None:
            writer.number(draft, self._bits)
        writer.codes(codes, ZERO)
        return writer.finish()

    def read_everything(self, payload: bytes, *, drafted: bool = False) -> tuple[Codes, int | None]:
        """All codes, shape (size,), and the draft. Raises ProtocolError if they are no probs, or have none for the draft."""
        reader = Reader(payload)
        draft = self._token(reader) if drafted else None
        codes: Codes = reader.codes("<u2", self._size, ZERO, "the scores")
        reader.finish()
        # All scores 0 are a cloud that says nothing: the mixture would be the device's own, and be called the mixture's.
        if (codes == ZERO).all():
            raise ProtocolError("the scores are of no distribution: all of them are 0", "bad-probability")
        if draft is not None and codes[draft] == ZERO:
            raise ProtocolError("the draft has probability 0, so it cannot have been drawn", "bad-probability")
        return codes, draft

    def question(self, question: Question) -> bytes:
        """Which question in 2 bits, then tokens after their count, or a count of scores."""
        writer = Writer()
        match question:
            case AskScores(tokens):
                writer.number(0, 2)
                writer.number(len(tokens), COUNT_BITS)
                for token in tokens:
                    writer.number(token, self._bits)
            case AskChunk(count):
                writer.number(1, 2)
                writer.number(count, COUNT_BITS)
            case AskAll():
                writer.number(2, 2)
        return writer.finish()

    def read_question(self, payload: bytes) -> Question:
        """Raises ProtocolError for what is none."""
        reader = Reader(payload)
        question: Question = AskAll()
        match reader.number(2, 3, "the kind of question"):
            case 0:
                count = reader.number(COUNT_BITS, 1 << COUNT_BITS, "the count of tokens")
                question = AskScores(tuple(self._token(reader) for _ in range(count)))
            case 1:
                question = AskChunk(reader.number(COUNT_BITS, 1 << COUNT_BITS, "the count of scores"))
        reader.finish()
        return question

    def tokens(self, tokens: list[int]) -> bytes:
        """Tokens one after the other."""
        writer = Writer()
        for token in tokens:
            writer.number(token, self._bits)
        return writer.finish()

    def read_tokens(self, payload: bytes, count: int) -> list[int]:
        """So many tokens."""
        reader = Reader(payload)
        tokens = [self._token(reader) for _ in range(count)]
        reader.finish()
        return tokens

    def _token(self, reader: Reader) -> int:
        return reader.number(self._bits, self._size, "a token")
