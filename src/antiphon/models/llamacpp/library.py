"""llama.cpp's library, loaded once, with what it says where something fails."""

import ctypes
import os

# Before llama.cpp starts its threads: two processes on few cores stall each other if idle threads spin, and an abort must
# not start a debugger.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

import llama_cpp

lib = llama_cpp

errors: list[str] = []
"""What it said last of what went wrong."""


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def _keep_errors(level: int, text: bytes, data: object) -> None:
    if level >= 3 and (line := text.decode(errors="replace").strip()):
        errors.append(line)
        del errors[:-8]


def keep_errors() -> None:
    """Let llama.cpp say nothing on the terminal: what goes wrong is in `errors`."""
    lib.llama_log_set(_keep_errors, ctypes.c_void_p(0))
