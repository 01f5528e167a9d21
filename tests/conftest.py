"""The two real models, loaded once; a test that needs one skips, saying why, where its package is missing.

Hypothesis tries the same examples in every run, a quarter of them in the fast core (`make test-fast`). Others are tried with
`--hypothesis-seed=NUMBER`, and others in every run, many times as many, in a deep one (`make test-deep`).
"""

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from antiphon.config import ModelConfig
from antiphon.errors import ModelError
from antiphon.models import load
from antiphon.models.base import InUse, Model
from support.resources import watched
from support.tiers import divide

ANY_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A time says nothing on a busy machine."""

settings.register_profile("core", ANY_TIME, derandomize=True, max_examples=25)
settings.register_profile("fixed", ANY_TIME, derandomize=True, max_examples=100)
settings.register_profile("explore", ANY_TIME, max_examples=100)
settings.register_profile("deep", ANY_TIME, max_examples=1000, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is read: its own settings begin with those of the profile.

    Where the tests run behind an `&`, Ctrl-C is ignored, and so it would be by the programs that they start and interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--hypothesis-profile", default=None) is None:
        seed = config.getoption("--hypothesis-seed", default=None)
        settings.load_profile("fixed" if seed is None else "explore")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` chooses among them."""
    divide(items)


def requantised(file: Path) -> Path:
    """SmolLM2 in Q4_0, written by llama.cpp in two seconds."""
    import llama_cpp

    from antiphon.models.catalog import _resolve

    try:
        source = _resolve("smollm2-135m")
    except ModelError as error:
        pytest.skip(str(error))
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.allow_requantize, parameters.ftype = True, llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0
    code = llama_cpp.llama_model_quantize(bytes(source), bytes(file), ctypes.byref(parameters))
    assert code == 0
    return file


_loaded: list[Model] = []
"""The real models that tests share."""


def _real(name: str) -> Iterator[Model]:
    try:
        model = load(ModelConfig(name, context=2048, threads=len(os.sched_getaffinity(0))))
    except ModelError as error:
        pytest.skip(str(error))
    _loaded.append(model)
    yield model
    _loaded.remove(model)
    model.close()


@pytest.fixture(scope="session")
def smollm2() -> Iterator[Model]:
    yield from _real("smollm2-135m")


@pytest.fixture(scope="session")
def gemma3() -> Iterator[Model]:
    yield from _real("gemma3-270m")


@pytest.fixture(scope="session")
def smollm2_other_precision(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """The same model with its weights rounded once more (Q4_0 for the most part): equal tokenizers, other scores."""
    file = requantised(tmp_path_factory.mktemp("models") / "smollm2-q4_0.gguf")
    yield from _real(str(file))


@pytest.fixture(scope="session")
def smollm2_again() -> Iterator[Model]:
    """The same model once more: two ends compute at the same time, and a model computes in one thread."""
    yield from _real("smollm2-135m")


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    """After every test, whatever happened in it: all that it, and clouds and devices, took of their models is back."""
    with watched():
        yield
    for model in _loaded:
        assert getattr(model, "in_use", InUse()) == InUse(), f"the test kept of {model.name}: {model.in_use}"
