"""`antiphon generate` on a terminal while its cloud is killed and started again."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from cli.test_answer_screen import Emulated

COMMAND = [sys.executable, "-m", "antiphon"]
ASKED = ["--model", "toy-device", "--max-tokens", "1500", "--seed", "2", "--temperature", "1", "--json", "the "]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def serve(port: int) -> "subprocess.Popen[str]":
    """A toy cloud that listens."""
    command = [*COMMAND, "serve", "--model", "toy-cloud", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert "ws://" in process.stdout.readline()
    return process


class OnTerminal:
    """A command that writes to a terminal of 80 columns and as many rows as it takes."""

    def __init__(self, *arguments: str) -> None:
        controller, terminal = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "1000"}
        self.process = subprocess.Popen([*COMMAND, *arguments], stdout=terminal, stderr=terminal, env=environment)
        os.close(terminal)
        self.seen = b""
        self._controller = controller
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._controller, 4096)
            except OSError:  # the command is over
                return
            self.seen += data

    def until(self, come: Callable[[bytes], bool]) -> None:
        deadline = time.monotonic() + 30
        while not come(self.seen) and time.monotonic() < deadline:
            time.sleep(0.005)
        assert come(self.seen), self.seen

    def end(self) -> str:
        """All that it wrote."""
        self.process.wait(60)
        self._reading.join(10)
        os.close(self._controller)
        return self.seen.decode().replace("\r\n", "\n")


def killed(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)


@pytest.mark.medium
def test_a_cloud_that_is_killed_and_comes_back() -> None:
    """The text of the answer is that of a cloud that stayed, and what was written meanwhile was dimmed, then written over."""
    port = free_port()
    asked = ["generate", "--cloud", f"ws://127.0.0.1:{port}", *ASKED]
    cloud = serve(port)
    try:
        whole = json.loads(
            subprocess.run([*COMMAND, *asked], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        )
        ran = OnTerminal(*asked, "--on-loss", "local")
        ran.until(lambda seen: len(seen) > 20)
        killed(cloud)
        ran.until(lambda seen: b"\x1b[2m" in seen)
        cloud = serve(port)
        out = ran.end()
    finally:
        killed(cloud)
    figures = json.loads(out.splitlines()[-1])
    assert ran.process.returncode == 0
    assert (figures["text"], figures["exact"]) == (whole["text"], True)
    assert figures["provisional"] > 0
    assert re.search(r"antiphon: .*; trying again for 30 s\n", out)
    assert f"{figures['provisional']} tokens were written without the cloud, and {figures['revised']} of them revised" in out
    screen = Emulated(80, 1000)
    screen.write(out)
    assert screen.styled("2") == "", "nothing is provisional at the end"


@pytest.mark.medium
@pytest.mark.parametrize("way", ["fail", "keep"])
def test_a_cloud_that_is_killed_for_good(way: str) -> None:
    port = free_port()
    cloud = serve(port)
    ways = ["--on-loss", "fail"] if way == "fail" else ["--on-loss", "local", "--on-return", "keep"]
    ran = OnTerminal("generate", "--cloud", f"ws://127.0.0.1:{port}", *ASKED, *ways)
    try:
        ran.until(lambda seen: len(seen) > 20)
    finally:
        killed(cloud)
    out = ran.end()
    if way == "fail":
        assert ran.process.returncode == 2
        assert re.search(r"\nantiphon: [^\n]*\n$", out), out
    else:
        figures = json.loads(out.splitlines()[-1])
        assert ran.process.returncode == 0
        assert figures["exact"] is False
        assert figures["kept"] > 0
        assert "not exact, " in out
        assert f"{figures['kept']} tokens were written without the cloud" in out
