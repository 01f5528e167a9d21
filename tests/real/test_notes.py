"""Notes that are all about one thing answer a question about it, as one of them alone does (SmolLM2 at both ends)."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrieval.test_postings import MILL
from support.libraries import make_library, serving_command

pytestmark = pytest.mark.model
OTHERS = {
    "Tides": "The moon raises the tides, twice a day, and storms raise them further.",
    "Mills": "A mill grinds grain between stones; most were driven by water or by wind.",
    "Fires": "Dry summers bring fires, and in 1871 a city burned for three days.",
}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    library = make_library(tmp_path_factory.mktemp("cloud") / "public.db", OTHERS)
    with serving_command("--model", "smollm2-135m", "--threads", "1", "--library", str(library)) as (url, process):
        yield url
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@pytest.mark.parametrize("number", [1, 6])
def test_the_date_is_answered(number: int, cloud: str, tmp_path: Path) -> None:
    library = make_library(tmp_path / "notes.db", {f"Note {at}": text for at, text in enumerate(MILL[:number])})
    options = ["--cloud", cloud, "--model", "smollm2-135m", "--threads", "1", "--library", str(library)]
    options += ["--max-tokens", "16", "--seed", "1", "--json"]
    command = [sys.executable, "-m", "antiphon", "ask", "when did the old mill burn down?", *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(ran.stdout.splitlines()[-1])
    assert "1911" in figures["text"]
    assert figures["weights"]["device"] > 0.5
