"""Where figures come from: command, commit, machine, libraries. Every report carries it, in JSON and on its page."""

import os
import platform
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from antiphon import __version__

NO_CHECKOUT = "no checkout"
"""What stands for the commit where the package lies in none."""
_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Origin:
    """What made a report. commit: with a plus if the code had changes that were not committed. processors: of the machine.

    llama_cpp: the version of llama-cpp-python, which brings llama.cpp along.
    """

    command: str
    version: str
    commit: str
    cpu: str
    processors: int
    llama_cpp: str
    numpy: str
    python: str

    def sentence(self) -> str:
        """For a page."""
        cores = f"{self.processors} core{'s' if self.processors > 1 else ''}"
        libraries = f"llama-cpp-python {self.llama_cpp}, numpy {self.numpy}, Python {self.python}"
        return f"Antiphon {self.version}, commit {self.commit}; {self.cpu}, {cores}; {libraries}."


def origin(command: str) -> Origin:
    """Of this process, for what a command measures."""
    return Origin(
        command=command,
        version=__version__,
        commit=commit(Path(__file__).resolve().parents[1]),
        cpu=_cpu(),
        processors=os.cpu_count() or 1,
        llama_cpp=version("llama-cpp-python"),
        numpy=version("numpy"),
        python=platform.python_version(),
    )


def from_here(figures: Mapping[str, object], command: str) -> dict[str, object]:
    """The figures of a command, with where they come from."""
    return {"origin": asdict(origin(command)), **figures}


def typed(arguments: Sequence[str]) -> str:
    """A command line of ours, without the folders of this machine."""
    return shlex.join(["antiphon-lab", *map(_named, arguments)])


def _named(argument: str) -> str:
    """A path of this machine says nothing to others: only its name is kept."""
    name, equals, value = argument.partition("=")
    if argument.startswith("--") and equals:
        return f"{name}={_named(value)}"
    return Path(argument).name if "/" in argument and "://" not in argument else argument


def commit(folder: Path) -> str:
    """That of the checkout whose `src/antiphon_lab` a folder is."""
    top, head = _git(folder, "rev-parse", "--show-toplevel"), _git(folder, "rev-parse", "--short=12", "HEAD")
    if top is None or head is None or folder != Path(top).resolve() / "src" / "antiphon_lab":
        return NO_CHECKOUT
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{head}+" if changed else head


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    """The processor's name, as Linux tells it, else as Python does."""
    lines = _CPUINFO.read_text(encoding="utf-8").splitlines() if _CPUINFO.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
