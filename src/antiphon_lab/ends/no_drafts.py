"""A device that cannot draft: it asks the cloud for every token, so `coupled` with it is `cloud` that pays a trip a token."""

from collections.abc import Sequence

from antiphon.core.distributions import Logits
from antiphon.errors import CapacityError
from antiphon.models.base import Context, Stop
from antiphon_lab.ends.wrapped_model import WrappedModel


class NonDraftingModel(WrappedModel):
    """Another model's tokenizer, without the model."""

    def open(self) -> Context:
        """A context that is full from the beginning."""
        return _FullContext()

    def close(self) -> None:
        """The other model stays open."""


class _FullContext:
    length = 0

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        raise CapacityError("a mute device reads nothing")

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        raise CapacityError("a mute device reads nothing")

    def settle(self, node: int = -1) -> None:
        pass

    def rewind(self, length: int) -> None:
        pass

    def fork(self) -> "_FullContext":
        return self

    def close(self) -> None:
        pass
