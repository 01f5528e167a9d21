"""Two ends on this machine: a cloud in a process of its own, and a device here."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from antiphon.config import ModelConfig
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.errors import LinkError, ModelError


@contextmanager
def cloud_process(config: ModelConfig, library: Path | None = None) -> Iterator[str]:
    """A cloud in a process of its own, with every method; gives its address once it listens.

    Raises ModelError if it does not start.
    """
    command = [sys.executable, "-m", "antiphon", "serve", "--model", config.name, "--port", "0", "--baselines"]
    command += ["--context", str(config.context), "--threads", str(config.threads)]
    command += [] if library is None else ["--library", str(library)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
    try:
        yield _address(process)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def _address(process: "subprocess.Popen[str]") -> str:
    if process.stdout is None or process.stderr is None:
        raise LinkError("the cloud process has no output to read its address from")
    for line in process.stdout:
        if "ws://" in line:
            return line[line.index("ws://") :].split()[0]
    raise ModelError(process.stderr.read().strip().removeprefix("antiphon: ") or "the cloud did not start")


@asynccontextmanager
async def connected(device: Device, url: str) -> AsyncIterator[Connection]:
    """A device's connection to the cloud at `url`."""
    connection = await connect(url, device.model, device.worker)
    try:
        yield connection
    finally:
        await connection.close()
