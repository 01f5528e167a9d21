"""A model that passes everything on to another one: what the benchmarks' own models have in common."""

from antiphon.models.base import Context, Model
from antiphon.models.needs import Need
from antiphon.vocabulary import Vocabulary


class WrappedModel:
    """Another model under its own name."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self._model.name

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's own."""
        return self._model.vocabulary

    @property
    def context_length(self) -> int:
        """The model's own."""
        return self._model.context_length

    @property
    def offers(self) -> frozenset[Need]:
        """The model's own."""
        return self._model.offers

    @property
    def begin(self) -> tuple[int, ...]:
        """The model's own."""
        return self._model.begin

    @property
    def chat_template(self) -> str | None:
        """The model's own."""
        return self._model.chat_template

    def open(self) -> Context:
        """An empty context."""
        return self._model.open()

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """The model's own."""
        return self._model.tokenize(text, special=special)

    def token_text(self, token: int) -> str:
        """The model's own."""
        return self._model.token_text(token)

    def close(self) -> None:
        """Free the model."""
        self._model.close()
