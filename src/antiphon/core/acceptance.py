"""Accept or resample one draft (METHODS 0).

Accept a draft iff u < target / draft with u uniform in [0, 1), strictly less, so that a token of target probability 0 is
never accepted. After a rejection the token comes from the residual. Draft probabilities are over the common vocabulary,
the first numbers of the wire order; beyond it a draft has probability 0.
"""

from antiphon.core.chance import Stream
from antiphon.core.distributions import Probs


def accepts(stream: Stream, target_prob: float, draft_prob: float) -> bool:
    """Test one draft that had `draft_prob` > 0 when it was drawn."""
    return stream.bernoulli(min(1.0, target_prob / draft_prob))


def residual(target_probs: Probs, draft_probs: Probs) -> Probs:
    """The law of the token after a rejection: max(target - draft, 0), normalised; shape of `target_probs`.

    `draft_probs` may be shorter (the common vocabulary comes first). If rounding leaves nothing, the target itself.
    """
    rest = target_probs.copy()
    rest[: len(draft_probs)] -= draft_probs
    rest.clip(min=0.0, out=rest)
    mass = rest.sum()
    return rest / mass if mass > 0 else target_probs
