"""From scores to the weight of an end (METHODS 4), and scores that mean the same on both ends.

omega(d) = exp(R(d) / tau) for each passage d that an end kept, h = the sum of them. Only the scalar log h leaves an end.

BM25 scores of two libraries are not comparable as they are: the weight of a word is its idf, and the largest idf grows with
the library. So the larger library has the larger scores for the same match, and a small one that holds the answer is drowned.
Scores are divided by that largest idf: what is left says which part of the most that a word can count was found. Measured on
Natural Questions (`antiphon-lab bench retrieval`), the end that holds the right passage has the larger weight in 0.97 / 0.95 /
0.91 / 0.91 of questions where the device has 5 / 50 / 600 / 1,300 of 2,600 passages; with plain scores in 0.90 / 0.87 / 0.90 /
0.91. Not mended by it: a word that is common in one library and rare in the other. One more passage about the question never
lowers the weight of an end (`postings`). Cosines of one embedder are comparable as they are; the scores of reciprocal rank
fusion are ranks and never weights.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from antiphon.errors import UsageError
from antiphon.retrieval import postings
from antiphon.retrieval.options import Ranking, SearchOptions

BM25_TEMPERATURE = 8.0
COSINE_TEMPERATURE = 0.3


@dataclass(frozen=True, slots=True)
class Scorer:
    """How an end scores passages. `scorer_id` must be equal on both ends, to the character: the handshake compares it."""

    name: str
    temperature: float

    @property
    def scorer_id(self) -> str:
        """The scorer with every parameter that changes a weight."""
        return f"{self.name}; temperature={float(self.temperature)!r}"

    def log_weight(self, scores: Sequence[float]) -> float:
        """The log of h of the passages with these scores (METHODS 4); -inf for none."""
        return log_weight(scores, self.temperature)


def log_weight(scores: Sequence[float], temperature: float) -> float:
    """The log of the sum of exp(score / temperature); -inf for no scores. ValueError unless the temperature is above 0."""
    if not temperature > 0:
        raise ValueError(f"the temperature must be above 0, not {temperature}")
    # In logarithms: exp of a score over a small tau overflows, and only differences of log h matter.
    return float(np.logaddexp.reduce(np.asarray(scores, dtype=np.float64) / temperature)) if len(scores) else -math.inf


def bm25_scorer(scaled: bool, temperature: float | None) -> Scorer:
    """BM25, as it is or scaled to a largest idf."""
    name = f"bm25 scaled={postings.LARGEST_IDF!r}" if scaled else "bm25"
    return Scorer(f"{name} {postings.identity()}", BM25_TEMPERATURE if temperature is None else temperature)


def cosine_scorer(embedder: str, temperature: float | None) -> Scorer:
    """The cosine of question and passage under the embedder of this identity."""
    return Scorer(f"cosine {embedder}", COSINE_TEMPERATURE if temperature is None else temperature)


def scorer_of(ranking: Ranking, embedder: str | None, options: SearchOptions) -> Scorer:
    """How an index with this ranking scores. embedder: its identity, if there is one. Raises UsageError if one is missing."""
    if ranking == "lexical":
        return bm25_scorer(options.scaled, options.temperature)
    if embedder is None:
        raise UsageError(f"{ranking} ranking needs an embedder: give --embedder DIR, or --ranking lexical")
    return cosine_scorer(embedder, options.temperature)
