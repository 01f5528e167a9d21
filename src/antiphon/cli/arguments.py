"""What several commands share: the types of their arguments, and the defaults that they show."""

from pathlib import Path
from typing import Annotated

import typer

from antiphon.config import ModelConfig
from antiphon.errors import UsageError

ENDS, DOCUMENTS, METHOD, SAMPLING, ANSWER = "Ends", "Documents", "Method", "Sampling", "Answer"
"""The groups in which the help shows options."""

ModelName = Annotated[str, typer.Option(help="A GGUF file, hf:owner/repo/file.gguf, smollm2-135m or gemma3-270m.")]
DeviceModel = Annotated[str | None, typer.Option("--model", help="The device's model, as in `serve`.", rich_help_panel=ENDS)]
Threads = Annotated[int, typer.Option(help="0 is one a core.", rich_help_panel=ENDS)]
ThreadsOfEach = Annotated[int, typer.Option(help="Threads of each of the two models.")]
Context = Annotated[int, typer.Option(help="Tokens of the model's context.", rich_help_panel=ENDS)]
CloudUrl = Annotated[
    str | None,
    typer.Option("--cloud", help="ws://HOST:PORT of the cloud; several with commas.", rich_help_panel=ENDS),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]
AnswerAsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.", rich_help_panel=ANSWER)]
DraftLength = Annotated[str | None, typer.Option(help="Tokens drafted a round, or auto.", rich_help_panel=METHOD)]
Patience = Annotated[
    str | None,
    typer.Option(
        metavar="MS",
        help="Wait for drafts: MS, auto or lockstep.",
        rich_help_panel=METHOD,
    ),
]
DraftLengthOfAll = Annotated[str, typer.Option("--draft-length", help="Tokens drafted a round by every method, or auto.")]
Temperature = Annotated[float, typer.Option(help="0 is greedy.", rich_help_panel=SAMPLING)]
TopP = Annotated[float, typer.Option(help="1 is off.", rich_help_panel=SAMPLING)]
TopK = Annotated[int, typer.Option(help="0 is off.", rich_help_panel=SAMPLING)]
MinP = Annotated[float, typer.Option(help="0 is off.", rich_help_panel=SAMPLING)]
RepetitionPenalty = Annotated[float, typer.Option(help="1 is off.", rich_help_panel=SAMPLING)]
PresencePenalty = Annotated[float, typer.Option(help="0 is off.", rich_help_panel=SAMPLING)]
FrequencyPenalty = Annotated[float, typer.Option(help="0 is off.", rich_help_panel=SAMPLING)]
Seed = Annotated[int | None, typer.Option(help="Fresh unless given.", rich_help_panel=SAMPLING)]
MaxTokens = Annotated[int, typer.Option(help="Tokens of the answer at most.", rich_help_panel=ANSWER)]
Stops = Annotated[
    list[str] | None, typer.Option("--stop", metavar="TEXT", help="End before this text; repeatable.", rich_help_panel=ANSWER)
]
OnLoss = Annotated[
    str, typer.Option(metavar="WAY", help="A lost link: wait, go on here (local), or fail.", rich_help_panel=ENDS)
]
OnReturn = Annotated[
    str, typer.Option(metavar="WAY", help="What was written here: verify it, or keep it.", rich_help_panel=ENDS)
]
LibraryKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--library-key-file",
        "--key-file",
        metavar="FILE",
        help="Else ANTIPHON_LIBRARY_KEY.",
        rich_help_panel=DOCUMENTS,
    ),
]
LibraryEmbedder = Annotated[
    Path | None,
    typer.Option(
        "--embedder",
        metavar="FOLDER",
        help="With model.onnx: vectors too.",
        rich_help_panel=DOCUMENTS,
    ),
]
WeightTemperature = Annotated[
    float | None,
    typer.Option(
        help="tau: lower, and better passages weigh more. Unless given 8 by words, 0.3 by vectors.",
        metavar="TAU",
        rich_help_panel=DOCUMENTS,
    ),
]

# Defaults live in the configuration; the command line only shows them.
MODEL = ModelConfig("any")


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
