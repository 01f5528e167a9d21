"""What several commands share: the types of their arguments, and the defaults that they show."""

from pathlib import Path
from typing import Annotated

import typer

from antiphon.config import CandidateOptions, ModelConfig, TreeOptions
from antiphon.errors import UsageError

ModelName = Annotated[str, typer.Option(help="A GGUF file, hf:owner/repo/file.gguf, smollm2-135m or gemma3-270m.")]
Threads = Annotated[int, typer.Option(help="Threads of the model; 0 is one a core.")]
ThreadsOfEach = Annotated[int, typer.Option(help="Threads of each of the two models.")]
Context = Annotated[int, typer.Option(help="Tokens that the model's context holds.")]
CloudUrl = Annotated[str | None, typer.Option("--cloud", help="The cloud's address, such as ws://127.0.0.1:8765.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]
DraftLength = Annotated[
    str | None, typer.Option(help="Tokens drafted a round, or auto; unless given, as the method does by default.")
]
DraftLengthOfAll = Annotated[str, typer.Option("--draft-length", help="Tokens drafted a round by every method, or auto.")]
DraftPrecision = Annotated[
    int | None,
    typer.Option(help="Bits of a draft probability on the wire: 16 or 32, also 8 for tslt, where it is the default."),
]
Precision = Annotated[int, typer.Option(help="Bits of a target probability on the wire: 16 (logarithms) or 32 (float32).")]
Temperature = Annotated[float, typer.Option(help="0 is greedy.")]
LibraryKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--library-key-file",
        "--key-file",
        help="A file with the key of an encrypted library; else ANTIPHON_LIBRARY_KEY has it.",
    ),
]
LibraryEmbedder = Annotated[
    Path | None,
    typer.Option("--embedder", help="Search the library also by vectors: a folder with model.onnx and tokenizer.json."),
]
WeightTemperature = Annotated[
    float | None,
    typer.Option(
        help="tau: the lower, the more do better passages weigh; equal at both ends. Unless given 8 by words, 0.3 by vectors."
    ),
]

# Defaults live in the configuration; the command line only shows them.
CHAIN, TREE, MODEL = CandidateOptions(), TreeOptions(), ModelConfig("any")


def names(listed: str) -> tuple[str, ...]:
    """The names of a list with commas between."""
    return tuple(name.strip() for name in listed.split(","))


def number_or_auto(what: str, given: str) -> int:
    """The number, or 0 for `auto`. Raises UsageError."""
    if given == "auto":
        return 0
    if not given.isascii() or not given.isdigit() or int(given) == 0:
        raise UsageError(f"{what} must be a number from 1 on, or auto, not {given!r}")
    return int(given)


def drafting(given: str | None) -> dict[str, object]:
    """The option `draft_length`, if it was given."""
    return {} if given is None else {"draft_length": number_or_auto("draft length", given)}
