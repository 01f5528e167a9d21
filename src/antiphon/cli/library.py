"""`antiphon library`: the documents that answers may use."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from antiphon import shown
from antiphon.cli.arguments import AsJson
from antiphon.errors import UsageError
from antiphon.retrieval.index import Found, Index, Renewing
from antiphon.retrieval.ingest import Report
from antiphon.retrieval.options import PassageOptions, Ranking, Reading, SearchOptions
from antiphon.retrieval.preview import preview_of
from antiphon.retrieval.words import Words

commands = typer.Typer(no_args_is_help=True, help="Keep documents that answers may use.")

Library = Annotated[str, typer.Option(help="The library: a file, or postgresql://USER@HOST/DATABASE, for `serve` mostly.")]
KeyFile = Annotated[
    Path | None, typer.Option(help="A file with the key of an encrypted library; else ANTIPHON_LIBRARY_KEY has it.")
]
EmbedderFolder = Annotated[
    Path | None, typer.Option("--embedder", help="Also search by vectors: a folder with model.onnx and tokenizer.json.")
]
Threads = Annotated[int, typer.Option(help="Threads of the embedder; 0 is one a core.")]
FollowLinks = Annotated[bool, typer.Option("--follow-links", help="Also follow links that lead out of a folder.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Name every file that is left out, and why.")]
_PASSAGES, _READING, _SHOWN = PassageOptions(), Reading(), 300


@commands.command()
def add(
    paths: Annotated[list[Path], typer.Argument(help="Files, and folders of them.")],
    library: Library,
    words: Annotated[int, typer.Option(help="Words of a passage.")] = _PASSAGES.words,
    overlap: Annotated[int, typer.Option(help="Words that a passage may share with the one before.")] = _PASSAGES.overlap,
    encoding: Annotated[str | None, typer.Option(help="Of text that is not UTF-8, such as cp1252.")] = None,
    text_field: Annotated[str, typer.Option(help="Which field of a row of JSON or CSV is its text.")] = _READING.text_field,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave out files and folders with such names, as *.log; may be repeated.")
    ] = None,
    follow_links: FollowLinks = False,
    verbose: Verbose = False,
    embedder: EmbedderFolder = None,
    threads: Threads = 0,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Add documents of many kinds, and folders of them; the same command goes on after an interruption."""
    from antiphon.retrieval import ingest
    from antiphon.retrieval.finding import Wanted
    from antiphon.retrieval.opening import open_library

    options, reading, wanted = (
        PassageOptions(words, overlap),
        Reading(encoding, text_field),
        Wanted(tuple(exclude or ()), follow_links),
    )
    with _bar() as (console, step):
        opened = open_library(
            library, key_file=key_file, embedder=embedder, threads=threads, create=True, renew=_renewing(step)
        )
        with opened as index:
            report = ingest.add(index, paths, options, step, reading, wanted)
            _embed(index, step)
    _show(report, console, verbose, as_json)
    if report.failed and not (report.added or report.updated or report.unchanged):
        raise UsageError("none of the files could be read")


@commands.command()
def update(
    library: Library,
    prune: Annotated[bool, typer.Option("--prune", help="Delete what came from files that are gone.")] = False,
    follow_links: FollowLinks = False,
    verbose: Verbose = False,
    embedder: EmbedderFolder = None,
    threads: Threads = 0,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Read again what has changed since it was added."""
    from antiphon.retrieval import ingest
    from antiphon.retrieval.opening import open_library

    with _bar() as (console, step):
        opened = open_library(library, key_file=key_file, embedder=embedder, threads=threads, renew=_renewing(step))
        with opened as index:
            report = ingest.update(index, prune, step, follow_links)
            _embed(index, step)
    _show(report, console, verbose, as_json)


@commands.command()
def remove(
    paths: Annotated[list[Path], typer.Argument(help="Files as `list` shows them, and folders of them.")],
    library: Library,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete files from the library, so that no byte of their text is left in it."""
    from antiphon.retrieval import ingest
    from antiphon.retrieval.opening import open_library

    with _bar() as (_, step), open_library(library, key_file=key_file, renew=_renewing(step)) as index:
        removed = ingest.remove(index, paths)
    Console(stderr=True).print(f"deleted {_counted(len(removed), 'file')}", highlight=False)
    if as_json:
        typer.echo(json.dumps({"deleted": removed}))


@commands.command("list")
def list_sources(library: Library, key_file: KeyFile = None, as_json: AsJson = False) -> None:
    """Show the files in the library."""
    from antiphon.retrieval.opening import open_library

    with open_library(library, key_file=key_file) as index:
        sources = index.sources()
    if as_json:
        typer.echo(json.dumps([asdict(source) for source in sources]))
        return
    for source in sources:
        typer.echo(f"{source.passages:>8,}  {shown.line(source.path)}")


@commands.command()
def stats(library: Library, key_file: KeyFile = None, as_json: AsJson = False) -> None:
    """Show what the library holds, and how it scores."""
    from antiphon.retrieval.opening import open_library

    with open_library(library, key_file=key_file) as index:
        found = index.stats()
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    for name, value in asdict(found).items():
        typer.echo(f"{name.replace('_', ' '):9}  {f'{value:,}' if isinstance(value, int) else value or 'none'}")


@commands.command()
def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    library: Library,
    count: Annotated[int, typer.Option("--count", "-k", help="Passages to show.")] = 4,
    ranking: Annotated[str | None, typer.Option(help="lexical, dense or hybrid; hybrid where an embedder is given.")] = None,
    embedder: EmbedderFolder = None,
    threads: Threads = 0,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show the passages that answer a question best, as an answer would use them."""
    from antiphon.retrieval.opening import open_library

    options = SearchOptions(cast(Ranking | None, ranking))
    with open_library(library, key_file=key_file, embedder=embedder, threads=threads, options=options) as index:
        found = index.search(question, count)
        scorer = index.scorer
    if as_json:
        weight = scorer.log_weight([result.score for result in found]) if found else None
        typer.echo(
            json.dumps({"scorer_id": scorer.scorer_id, "log_weight": weight, "passages": [_row(item) for item in found]})
        )
        return
    words = Words()
    for result in found:
        _show_passage(result, words, question)
    words.close()
    if not found:
        typer.echo("nothing in the library has a word of this question", err=True)


def _row(found: Found) -> dict[str, Any]:
    return {"score": found.score, **asdict(found.passage), "place": str(found.passage.place)}


def _show_passage(found: Found, words: Words, question: str) -> None:
    passage = found.passage
    place = f"({passage.source}, {passage.place})"
    typer.echo(shown.line(f"{found.score:6.2f}  {passage.title}  {place}"))
    preview = preview_of(passage.text, words.asked(question), words, _SHOWN)
    line = Text("        ").append(shown.line(preview.text))
    for first, last in preview.marked:
        line.stylize("bold", 8 + first, 8 + last)
    console = Console(highlight=False, soft_wrap=True)
    console.print(line) if console.is_terminal else typer.echo(line.plain)


@contextmanager
def _bar() -> Iterator[tuple[Console, Any]]:
    """A progress bar on stderr, and the function that moves it."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def step(done: int, total: int, name: str) -> None:
            progress.update(task, completed=done, total=total, description=shown.line(os.path.basename(name))[-40:])

        yield console, step


def _renewing(step: Any) -> Renewing:
    return lambda done, total: step(done, total, "indexing anew")


def _embed(index: Index, step: Any) -> None:
    index.embed(lambda done, total: step(done, total, "vectors"))


def _show(report: Report, console: Console, verbose: bool, as_json: bool) -> None:
    from antiphon.retrieval.finding import EXCLUDED, NO_READER

    def say(sentence: str) -> None:
        console.print(shown.line(sentence), highlight=False, markup=False, soft_wrap=True)

    for path, sentence in report.failed.items():
        say(f"skipped {path}: {sentence}")
    for path, notes in report.told.items():
        say(f"note {path}: {'; '.join(notes)}")
    for path, before in report.renamed.items():
        say(f"renamed {path}: it was {before}")
    for path in report.vanished:
        say(f"gone {path}: --prune deletes it")
    for path, reason in report.left_out.items():
        if verbose or reason not in (NO_READER, EXCLUDED):
            say(f"left out {path}: {reason}")
    if report.kinds and not verbose:
        kinds = ", ".join(f"{count} {kind}" for kind, count in report.kinds.items())
        say(f"left out for want of a reader: {kinds} (--verbose names them)")
    parts = (
        f"{_counted(len(report.added), 'file')} added",
        f"{len(report.updated)} updated",
        f"{len(report.unchanged)} unchanged",
        f"{len(report.deleted)} deleted" if report.deleted else "",
        f"{len(report.failed)} skipped" if report.failed else "",
        f"{_counted(report.passages, 'passage')} written",
    )
    say(", ".join(part for part in parts if part))
    if as_json:
        typer.echo(json.dumps(asdict(report)))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
