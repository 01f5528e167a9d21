"""Reading in a process of its own, with limits of time and memory: a file that is made to harm harms nobody.

The process is started for the first file that needs it, and again after one that had to be ended. It gets the path and gives
documents back as lines of JSON. Plain text, rows and the like are read here.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from antiphon.retrieval.documents import Document, DocumentError
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers import APART, read, reader_of

SECONDS = 60.0
"""For one file, at most."""
MEMORY = 3 * 2**30
"""Bytes for the process that reads."""
_CODE = "import sys; sys.path[:] = {path!r}; from antiphon.retrieval.readers.apart import serve; serve()"


class _Word(msgspec.Struct, omit_defaults=True):
    """One line from the process: a document, or the end with what was wrong, if anything was."""

    document: dict[str, Any] | None = None
    wrong: str = ""


class Reader:
    """Reads files, one after the other. A `with` block owns the process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def read(self, path: Path, reading: Reading) -> Iterator[Document]:
        """The documents of a file, as `readers.read`."""
        if reader_of(path) not in APART:
            yield from read(path, reading)
            return
        complete = False
        try:
            for word in self._words(self._started(), path, reading):
                if word.document is None:
                    complete = True
                    if word.wrong:
                        raise DocumentError(word.wrong)
                    return
                yield _document(word.document)
        finally:
            # Whoever stopped midway, us included, left half an answer in the pipe: the next file must not read it as its own.
            if not complete:
                self._end()

    def _words(self, process: subprocess.Popen[bytes], path: Path, reading: Reading) -> Iterator[_Word]:
        """What the process says of a file. Raises DocumentError where it takes too long or ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        # A timer, because nothing else can end a read that waits for a line of a process that never writes one.
        timer = threading.Timer(SECONDS, give_up)
        timer.start()
        try:
            process.stdin.write(msgspec.json.encode([str(path), asdict(reading)]) + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                yield msgspec.json.decode(line, type=_Word)
        except BrokenPipeError as error:
            raise DocumentError("it cannot be read: the program that reads it has ended") from error
        finally:
            timer.cancel()
        if late.is_set():
            raise DocumentError(f"reading it took more than {SECONDS:g} seconds: it is too large, or made to be slow")
        raise DocumentError("it ended the program that reads it: its contents are broken, or need too much memory")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            command = [sys.executable, "-c", _CODE.format(path=sys.path)]
            pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing)  # noqa: S603 - this very program
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _document(fields: dict[str, Any]) -> Document:
    return Document(**{**fields, **{name: tuple(fields[name]) for name in ("starts", "numbers", "told")}})


def serve() -> None:
    """What the process does: a path a line in, its documents out."""
    _limit_memory()
    # Libraries print warnings. On the real stdout they would be lines of the protocol.
    out = sys.stdout.buffer
    sys.stdout = sys.stderr
    for line in sys.stdin.buffer:
        path, reading = msgspec.json.decode(line)
        try:
            for document in read(Path(path), Reading(**reading)):
                fields = {**asdict(document), "starts": list(document.starts), "numbers": list(document.numbers)}
                out.write(msgspec.json.encode(_Word(_encodable(fields))) + b"\n")
            word = _Word()
        except DocumentError as error:
            word = _Word(wrong=str(error))
        except MemoryError:
            word = _Word(wrong="reading it needs too much memory")
        except RecursionError:
            word = _Word(wrong="it is nested too deeply")
        out.write(msgspec.json.encode(word) + b"\n")
        out.flush()


def _encodable(fields: dict[str, Any]) -> dict[str, Any]:
    """Without lone surrogates, which no message can carry."""
    return {
        name: value.encode(errors="replace").decode() if isinstance(value, str) else value for name, value in fields.items()
    }


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # of an operating system without such limits
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
