#!/bin/sh
# Makes .venv and installs Antiphon into it for development. The one slow step, compiling llama.cpp, shows that it lives.
set -eu
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-python3}"

fail() {
    echo "antiphon: $1" >&2
    exit 2
}

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "Python 3.11 or newer is needed: install it, or name it with PYTHON=/path/to/python3 make ..."
command -v c++ >/dev/null && command -v cc >/dev/null ||
    fail "a C and C++ compiler is needed to build llama.cpp: install one (on Debian: apt-get install build-essential)"
if [ ! -x .venv/bin/pip ]; then
    "$PYTHON" -m venv .venv ||
        fail "no virtual environment could be made: install Python's venv module (on Debian: apt-get install python3-venv)"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
pip() { .venv/bin/pip install --disable-pip-version-check "$@" >"$log" 2>&1; }

if ! .venv/bin/python -c 'import llama_cpp' 2>/dev/null; then
    echo "antiphon: installing llama.cpp; where it must be compiled this takes minutes (5 to 10 on two cores), once"
    started=$(date +%s)
    CMAKE_ARGS="${CMAKE_ARGS:--DLLAVA_BUILD=OFF}" pip 'llama-cpp-python>=0.3.36' &
    job=$!
    while kill -0 "$job" 2>/dev/null; do
        sleep 2
        elapsed=$(($(date +%s) - started))
        if [ -t 1 ]; then
            printf '\rantiphon: still at work, %d s ' "$elapsed"
        elif [ $((elapsed % 30)) -lt 2 ]; then
            echo "antiphon: still at work, $elapsed s"
        fi
    done
    if [ -t 1 ]; then printf '\n'; fi
    wait "$job" || {
        tail -n 30 "$log" >&2
        fail "llama.cpp could not be installed: the lines above say why"
    }
fi
echo "antiphon: installing Antiphon and its tools"
pip -e '.[dev]' || {
    tail -n 30 "$log" >&2
    fail "the installation failed: the lines above say why"
}
