"""Small libraries, and clouds that serve them, for `antiphon ask`."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from antiphon.models.toy import ToyModel, toy_pieces
from antiphon.retrieval.ingest import add
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions

CANARY = "zanzibar vermilion quokka"
"""A phrase of a private document that no answer holds."""
PRIVATE = {"Diary": f"The old mill in our village burned down in 1911, writes {CANARY}.", "Cellar": "The cellar keeps apples."}
PUBLIC = {"Mills": "A mill grinds grain; many a mill burned down in dry summers.", "Tides": "The moon raises the tides."}
OTHER = {"Fires": "A fire burned in the mill of the next village, too."}
LONG = {str(year): f"The mill of {year} burned down. " + 140 * ("#" * 38 + " ") for year in (1711, 1811)}
"""Each is more than the context of a toy has room for."""
QUESTION = "when has the mill burned down"


def make_library(file: Path, documents: Mapping[str, str], key_file: Path | None = None, embedder: Path | None = None) -> Path:
    """A library of one file of JSON lines, its first row the first document; encrypted if there is a key."""
    rows = file.with_suffix(".jsonl")
    rows.write_text("".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in documents.items()))
    with open_library(str(file), key_file=key_file, embedder=embedder, create=True) as library:
        add(library, [rows], PassageOptions(), lambda done, total, name: None)
        library.embed(lambda done, total: None)
    return file


def toy(seed: int) -> ToyModel:
    """A toy with the tokens of `toy-cloud`, and scores of its own."""
    return ToyModel(toy_pieces(order=1), seed=seed, noise=0.5, sharpness=3.0, name=f"toy-{seed}")


_SERVE = """
import sys
from antiphon.cloud.server import address, listen, serve
from antiphon.cloud.service import Cloud
from antiphon.config import ServeConfig
from antiphon.retrieval.opening import open_library
from support.libraries import toy
with open_library(sys.argv[2]) as library, listen(ServeConfig(port=0)) as listener:
    cloud = Cloud(toy(int(sys.argv[1])), library=library)
    print(address(listener), flush=True)
    serve(cloud, listener)
    cloud.close()
"""


@contextmanager
def serving_toy(seed: int, library: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A cloud in a process of its own, whose toy has other scores than `toy-cloud`; its address, and the process."""
    command = [sys.executable, "-c", _SERVE, str(seed), str(library)]
    with _serving(command, cwd=Path(__file__).parents[1]) as served:
        yield served


@contextmanager
def serving_command(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`antiphon serve` with these options on a free port; its address, and the process."""
    with _serving([sys.executable, "-m", "antiphon", "serve", "--port", "0", *options], cwd=None) as served:
        yield served


@contextmanager
def _serving(command: list[str], cwd: Path | None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd) as process:
        assert process.stdout is not None
        found = re.search(r"ws://\S+", process.stdout.readline())
        try:
            assert found, process.communicate(timeout=20)
            yield found.group(), process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
