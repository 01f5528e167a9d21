"""Block verification: the drafts of a round are judged together, not one after the other (METHODS 2, block verification).

One after the other, a draft that the target likes less than the drafter may fall before one is looked at that the target likes
more. Judged together, what the one lacks the other makes up for. Of all rules that write exactly the target's distribution none
lets more drafts stand on average (Sun et al., arXiv 2403.10444).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from antiphon.core.chance import Stream
from antiphon.core.distributions import Probs


@dataclass(frozen=True, slots=True)
class Block:
    """What the N drafts of a round are judged by.

    reached: p_0 to p_N; given what the first i drafts are, at least i stand with probability p_i. Where exactly i stand, the
    next token comes from max(p_i target - draft, 0), normalised; after all N from the target. held: h_1 to h_N; where no more
    than i stand, i do with probability h_i. Both end early where the target rules a draft out.
    """

    reached: tuple[float, ...]
    held: tuple[float, ...]

    def accepted(self, stream: Callable[[int], Stream]) -> int:
        """How many drafts stand. stream: the draws about the draft with this index, 0 to N - 1, of which one is made."""
        # The largest i with u_i < h_i. Each u_i is a number of its own, so from the last on nothing hangs on those before it.
        for count in range(len(self.held), 0, -1):
            if stream(count - 1).bernoulli(self.held[count - 1]):
                return count
        return 0


def judged(numbers: Sequence[int], draft_probs: Sequence[Probs], target_probs: Callable[[int], Probs]) -> Block:
    """What drafts are judged by.

    numbers, draft_probs: of each draft its token and the distribution that it was drawn from, in which it is above 0; shape
    (common tokens,), the first of the target's tokens. target_probs: the target distribution after so many drafts, shape
    (tokens,); asked for 0 to N - 1, each once, in this order.
    """
    reached, held = [1.0], list[float]()
    for index, (number, draft) in enumerate(zip(numbers, draft_probs, strict=True)):
        # The target never writes what was drafted up to here: whatever follows cannot stand.
        if reached[-1] == 0.0:
            break
        target = target_probs(index)
        if index:
            held.append(_held(reached[-1], _rest(target, draft, reached[-1])))
        reached.append(min(reached[-1] * float(target[number]) / float(draft[number]), 1.0))
    # No draft follows the last, for which it could be given up.
    return Block(tuple(reached), (*held, reached[-1]) if numbers else ())


def _rest(target: Probs, draft: Probs, reached: float) -> float:
    """S_i: the mass of what is left of the target."""
    # What cannot be drafted is left whole, so nothing as long as all of the target's tokens has to be made.
    common = reached * target[: len(draft)]
    common -= draft
    return float(common.clip(min=0.0, out=common).sum()) + reached * float(target[len(draft) :].sum())


def _held(reached: float, rest: float) -> float:
    """h_i. rest: S_i."""
    # Nothing is left where all that was reached goes on to the next draft.
    return rest / (rest + 1.0 - reached) if rest > 0.0 else 0.0
