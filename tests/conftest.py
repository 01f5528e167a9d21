"""The two real models, loaded once; a test that needs one skips, saying why, where its package is missing."""

import os
from collections.abc import Iterator

import pytest

from antiphon.config import ModelConfig
from antiphon.errors import ModelError
from antiphon.models import load
from antiphon.models.base import Model


def _real(name: str) -> Iterator[Model]:
    try:
        model = load(ModelConfig(name, context=2048, threads=len(os.sched_getaffinity(0))))
    except ModelError as error:
        pytest.skip(str(error))
    yield model
    model.close()


@pytest.fixture(scope="session")
def smollm2() -> Iterator[Model]:
    yield from _real("smollm2-135m")


@pytest.fixture(scope="session")
def gemma3() -> Iterator[Model]:
    yield from _real("gemma3-270m")


@pytest.fixture(scope="session")
def smollm2_again() -> Iterator[Model]:
    """The same model once more: two ends compute at the same time, and a model computes in one thread."""
    yield from _real("smollm2-135m")
