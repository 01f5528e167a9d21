"""Whether a device, its documents and its clouds are what a method works with: one sentence where they are not."""

from collections.abc import Sequence

from antiphon.config import Request
from antiphon.device.connection import Connection
from antiphon.errors import UsageError
from antiphon.methods import WITHOUT_DOCUMENTS, require_no_baseline
from antiphon.methods.base import Method, OnLoss
from antiphon.models.base import Model
from antiphon.retrieval.index import Index


def require_given(method: Method, *, model: object, clouds: Sequence[str], library: object) -> None:
    """Raise UsageError unless what a method needs was named: a model of the device, clouds, documents of the device.

    It asks for no more than is known before anything is opened; None stands for what was not given.
    """
    if method.cloud is not None and method.mixes:
        require_clouds(method, clouds)
    if method.drafts and model is None:
        raise UsageError(f"the method {method.name} {'writes' if method.mixes else 'drafts'} on the device: give --model")
    if method.cloud is not None:
        require_clouds(method, clouds)
    if method.mixes and library is None:
        raise UsageError(f"the method {method.name} reads documents of the device: give --library FILE")


def require_loss(method: Method, request: Request) -> None:
    """Raise UsageError if a request wants of a lost link what its method cannot do."""
    if request.on_loss == "wait":
        return
    if method.cloud is None or method.on_loss is not OnLoss.WAIT:
        why = "asks no cloud" if method.cloud is None else "goes on without a cloud that is lost in any case"
        raise UsageError(f"the method {method.name} {why}: leave on-loss out")
    if request.on_loss == "local" and method.alone is None:
        able = " or ".join(name for name, one in WITHOUT_DOCUMENTS.items() if one.alone is not None)
        raise UsageError(f"the method {method.name} cannot write on alone: ask for on-loss wait or fail, or use {able}")


def require_clouds(method: Method, clouds: Sequence[object]) -> None:
    """Raise UsageError if a method that asks clouds has none of them, too many, or one twice."""
    if not clouds:
        raise UsageError(f"the method {method.name} needs a cloud: give --cloud ws://HOST:PORT")
    if len(set(clouds)) < len(clouds):
        raise UsageError("a cloud is named twice, and its documents would count twice: name each once")
    if len(clouds) > 1 and (method.one_cloud or not method.mixes):
        raise UsageError(f"the method {method.name} works with one cloud, not with {len(clouds)}")


def require_documents(method: Method, connection: Connection, address: str) -> None:
    """Raise UsageError if a method mixes documents, and the cloud has none: the likeliest reason not to know the method."""
    if method.mixes and not connection.welcome.scorer:
        sentence = f"the cloud at {address} has no documents, and {method.name} mixes what both ends have: "
        raise UsageError(f"{sentence}start it with `antiphon serve --library FILE`, or use crcg, which asks no cloud")


def require_fit(method: Method, connection: Connection, model: Model | None, library: Index | None) -> None:
    """Raise UsageError unless the cloud has the method; if it mixes, also the same tokens, and scores passages alike."""
    welcome = connection.welcome
    if method.name not in welcome.methods:
        if welcome.scorer or not method.mixes:
            require_no_baseline(method.name)
        raise UsageError(f"the cloud does not know the method {method.name}: it has {', '.join(welcome.methods)}")
    if method.mixes and model is not None and model.vocabulary.fingerprint != welcome.vocabulary:
        sentence = f"{method.name} mixes scores token by token, so both ends need the same tokenizer; "
        raise UsageError(f"{sentence}{model.name} and the cloud's {welcome.model} differ: serve a model of one family")
    if method.mixes and library is not None and library.scorer.scorer_id != welcome.scorer:
        sentence = "both ends must score passages alike to be weighed against each other; "
        raise UsageError(f"{sentence}this library has {library.scorer.scorer_id!r}, the cloud's {welcome.scorer!r}")
