"""How many nodes of a tree a pass of the cloud reads, and when it goes on without (METHODS 3, *Stream*)."""

from collections.abc import Collection

from antiphon.core.pass_costs import PassCosts
from antiphon.core.stream import AUTO, Mean, Ratio, View, Wait
from antiphon.core.tree_stream import LEVELS, choose_wait
from antiphon.methods.speculative.stream.patience import ENOUGH, Streaming


class TreeStreaming(Streaming):
    """As for a line, with levels for drafts; of the nodes that are there it takes the first ones, as many as pay.

    How often the first, second, ... node that came stands is learned: a device sends the likeliest first.
    """

    def __init__(self, patience: float, least: float, objective: str, costs: PassCosts, nodes: int) -> None:
        super().__init__(patience, least, objective, costs, LEVELS)
        self._stood = [Ratio(0.5 / (place + 1), 1.0) for place in range(nodes)]
        self._per_level = Mean()

    def ordered(self, there: int, levels: int, stood: Collection[int]) -> None:
        """Of so many nodes on so many levels those at these places, in the order of arrival, stood."""
        if there:
            self._per_level.observe(there / levels)
        for place, ratio in enumerate(self._stood[:there]):
            ratio.observe(float(place in stood))

    def take(self, there: int) -> int:
        """As many nodes as pay in the measured cost of passes."""
        tokens, best, taken = 1.0, 0.0, 0
        for nodes in range(min(there, len(self._stood)) + 1):
            tokens += self._stood[nodes - 1].share if nodes else 0.0
            cost = self._costs.seconds(nodes + 1) + self._price
            if (rate := tokens / cost if cost > 0 else tokens) >= best:
                best, taken = rate, nodes
        return taken

    def _pays_never(self) -> bool:
        return self._tested >= ENOUGH and self._costs.measured(1) and self.take(len(self._stood)) == 0

    def within(self, there: int, since: float, now: float) -> float | None:
        """As long as was chosen, unless there are levels enough; not at all where the device drafts nothing."""
        if self._idle or there > self._wait.drafts:
            return 0.0
        return max(0.0, since + self._wait.seconds - now)

    def _chosen(self) -> Wait:
        if self._fixed != AUTO:
            return Wait(self._fixed, self._most)
        if not self._response.known:  # nothing has come yet: what to wait for is not known
            return Wait(self._least, self._most)
        return choose_wait(self._view, self._price, self._least)

    @property
    def _view(self) -> View:
        stands, wide = min(0.999, self._stands.share), self._per_level.known(1.0)
        return View(
            stands,
            self._response.median,
            self._gap.least,
            lambda width: self._costs.seconds(round(1 + (width - 1) * wide)),
            self._most,
        )
