"""The documents are true: their code runs, the README's tree is the real one, and every command of the README is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.config import Request, SamplingParams
from antiphon.device.check import check
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.speculative.options import ChainOptions
from support.links import linked

ROOT = Path(__file__).resolve().parents[1]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)


def test_the_new_method_of_the_guide_is_exact_and_runs_over_a_socket() -> None:
    names: dict = {}
    method, proof = blocks("docs/adding-a-method.md", "python")
    assert len([line for line in method.splitlines() if line.strip()]) <= 40
    exec(method, names)
    exec(proof, names)
    methods = {**WITHOUT_DOCUMENTS, "point": names["POINT"]}

    async def test(device: Device, connection: Connection) -> None:
        asked = Request("the ", "point", ChainOptions(3), SamplingParams(temperature=0), max_tokens=30)
        result = await device.generate(asked, connection)
        assert (await check(device, asked, result, connection)).equal
        assert result.traffic.up.payload_bits <= (16 * result.answer.exchanged.drafted) + 8 * result.answer.rounds

    linked(test, methods=methods)


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, ROOT / "examples/one_process.py"], capture_output=True, text=True, check=True)
    (difference,) = re.findall(r"dsd and cloud differ by at most (\S+)", done.stdout)[:1]
    assert float(difference) < 1e-12


def test_the_tree_of_the_readme_is_the_real_one() -> None:
    (tree,) = blocks("README.md", "text")
    shown: dict[str, set[str]] = {}
    package = ""
    for line in tree.splitlines():
        name = line.split()[0].rstrip("/")
        if not line.startswith("  "):
            package, shown[name] = name, set()
        else:
            shown[package].add(name)
    real = {
        f"src/{package.name}": {path.name for path in package.iterdir() if not path.name.startswith("__")} - {"py.typed"}
        for package in (ROOT / "src").iterdir()
    }
    assert shown == real


def test_nothing_of_the_place_it_was_written_at_is_in_the_repository() -> None:
    words = ("/work" + "/", "shared" + "/papers", "/." + "library")
    for path in (ROOT / "src").rglob("*.py"):
        assert not any(word in path.read_text() for word in words), path


def test_importing_costs_no_model_library() -> None:
    code = "import antiphon, antiphon.models, antiphon.cli, sys; print([m for m in ('llama_cpp', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.model
def test_every_command_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, as one would type them: `&` in the background until the end. `make test` is what runs this."""
    commands = [line for block in blocks("README.md", "sh") for line in block.splitlines() if line and not line.startswith("#")]
    script = ["set -e", f"cd {ROOT}", f'export PATH="{Path(sys.executable).parent}:$PATH"']
    for command in commands:
        if command.startswith(("make test", "make check", "pip install", ". .venv")):
            continue  # this test runs under `make test`; the package is tested in test_package.py
        script.append(command)
        if command.endswith("&"):
            script += ["trap 'kill $(jobs -p)' EXIT", "sleep 15"]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "the very tokens of cloud" in done.stdout
    assert "The old mill burned down on the night of 3 August 1911." in done.stdout
