"""Every value that does not fit is refused with one sentence; the defaults are what they are."""

import dataclasses
import math
import re
from collections.abc import Callable

import pytest

from antiphon.config import Limits, ModelConfig, Request, SamplingParams, ServeConfig, Timeouts
from antiphon.core.stream import LOCKSTEP
from antiphon.errors import UsageError
from antiphon.methods.baselines.cu_hlm import CompressedOptions
from antiphon.methods.speculative.coupled_tree import CoupledTreeOptions
from antiphon.methods.speculative.options import (
    LONGEST_PATIENCE,
    MAX_AHEAD,
    MAX_DRAFT_LENGTH,
    ChainOptions,
    CoupledOptions,
    SplitOptions,
)
from antiphon.methods.speculative.tslt import TsltOptions
from antiphon.methods.speculative.tslt_tree import TsltTreeOptions
from antiphon.methods.speculative.xcosd_e import CandidateOptions
from antiphon.options import NoOptions

BAD_SAMPLING = [
    ("temperature", -0.1, "temperature must be between 0 and 100, not -0.1"),
    ("temperature", 100.5, "temperature must be between 0 and 100, not 100.5"),
    ("temperature", math.nan, "every sampling parameter must be a finite number"),
    ("temperature", math.inf, "every sampling parameter must be a finite number"),
    ("top_k", -1, "top-k must be 0 (off) or more, not -1"),
    ("top_p", 0.0, "top-p must be above 0 and at most 1 (off), not 0.0"),
    ("top_p", 1.1, "top-p must be above 0 and at most 1 (off), not 1.1"),
    ("top_p", math.nan, "every sampling parameter must be a finite number"),
    ("min_p", -0.1, "min-p must be between 0 (off) and 1, not -0.1"),
    ("min_p", 1.1, "min-p must be between 0 (off) and 1, not 1.1"),
    ("repetition_penalty", 0.0, "repetition penalty must be above 0, not 0.0"),
    ("repetition_penalty", -1.0, "repetition penalty must be above 0, not -1.0"),
    ("repetition_penalty", math.inf, "every sampling parameter must be a finite number"),
    ("presence_penalty", math.nan, "every sampling parameter must be a finite number"),
    ("frequency_penalty", -math.inf, "every sampling parameter must be a finite number"),
    ("logit_bias", ((1, math.nan),), "every logit bias must be a finite number"),
    ("logit_bias", ((1, 0.0), (2, math.inf)), "every logit bias must be a finite number"),
]
BAD_LENGTHS = [
    ("draft_length", length, f"draft length must be 1 to {MAX_DRAFT_LENGTH}, or 0 (auto), not {length}")
    for length in (-1, MAX_DRAFT_LENGTH + 1)
]
BAD_OPTIONS = [
    *BAD_LENGTHS,
    ("draft_precision", 8, "draft precision must be 16 or 32 bits, not 8"),
    ("draft_precision", 0, "draft precision must be 16 or 32 bits, not 0"),
]
BAD_CANDIDATES = [
    *BAD_OPTIONS,
    ("precision", 8, "precision must be 16 or 32 bits, not 8"),
    ("candidates", -1, "candidates must be 1 to 31, or 0 (auto), not -1"),
    ("candidates", 32, "candidates must be 1 to 31, or 0 (auto), not 32"),
    ("iterations", 0, "iterations must be 1 to 64, not 0"),
    ("iterations", 65, "iterations must be 1 to 64, not 65"),
]
BAD_SPARSE = [
    ("draft_precision", 24, "draft precision must be 8, 16 or 32 bits, not 24"),
    ("truncate", "k=0", "truncate must be k=NUMBER from 1 on, p=SHARE above 0 and at most 1, or off, not 'k=0'"),
    ("truncate", "k=many", "truncate must be k=NUMBER"),
    ("truncate", "p=1.5", "truncate must be k=NUMBER"),
    ("truncate", "p=nan", "truncate must be k=NUMBER"),
    ("truncate", "off=1", "truncate must be k=NUMBER"),
    ("truncate", "", "truncate must be k=NUMBER"),
    ("wire", "loose", "wire must be delta, plain or tight, not 'loose'"),
]
BAD_TREES = [
    ("expansion", "", "expansion must be numbers from 1 on with commas between, not ''"),
    ("expansion", "2,,2", "expansion must be numbers from 1 on"),
    ("expansion", "2,0", "expansion must be numbers from 1 on"),
    ("expansion", "2,-1", "expansion must be numbers from 1 on"),
    ("expansion", ",".join("1" * 17), "expansion must be numbers from 1 on"),
    ("expansion", "4,4,4", "a tree may have at most 63 nodes, but 4,4,4 has 84"),
    ("expansion", "64", "a tree may have at most 63 nodes, but 64 has 64"),
]
BAD_STREAM = [
    ("ahead", -2, f"ahead must be 0 to {MAX_AHEAD} drafts, or -1 (auto), not -2"),
    ("ahead", MAX_AHEAD + 1, f"ahead must be 0 to {MAX_AHEAD} drafts, or -1 (auto), not {MAX_AHEAD + 1}"),
    ("patience", -2.0, "patience must be 0 to 60000 milliseconds, auto or lockstep, not -2.0"),
    ("patience", LONGEST_PATIENCE + 1, "patience must be 0 to 60000 milliseconds, auto or lockstep, not 60001.0"),
    ("patience", math.nan, "patience must be 0 to 60000 milliseconds, auto or lockstep, not nan"),
    ("objective", "haste", "objective must be one of speed, cloud, data, battery, not 'haste'"),
]
BAD_UNCERTAINTY = [
    ("draft_precision", 24, "draft precision must be 16 or 32 bits, not 24"),
    ("draws", 0, "draws must be 1 to 1000, not 0"),
    ("uncertain", -0.1, "uncertain must be a share from 0 to 1, not -0.1"),
    ("uncertain", 1.1, "uncertain must be a share from 0 to 1, not 1.1"),
    ("uncertain", math.nan, "uncertain must be a share from 0 to 1, not nan"),
    ("top_k", 0, "top-k must be 1 to 4096, not 0"),
    ("top_k", 4097, "top-k must be 1 to 4096, not 4097"),
]
BAD_MODEL = [
    ("name", "", "a model needs a name"),
    ("name", "  ", "a model needs a name"),
    ("context", 15, "context must be 16 to 1048576 tokens, not 15"),
    ("context", 2**20 + 1, "context must be 16 to 1048576 tokens, not 1048577"),
    ("threads", -1, "threads must be 0 (one a core) to 1024, not -1"),
    ("threads", 1025, "threads must be 0 (one a core) to 1024, not 1025"),
]
BAD_LIMITS = [
    ("frame_bytes", 1023, "frames of at least 1024 bytes must be accepted, not 1023"),
    ("max_tokens", 0, "every limit must be at least 1"),
    ("idle_seconds", 0.0, "every limit of time must be above 0 seconds"),
]
BAD_SERVE = [("port", -1, "port must be 0 (any free one) to 65535, not -1"), ("port", 65536, "port must be 0")]
BAD_REQUEST = [
    ("prompt", "", "the prompt is empty: give at least one character"),
    ("prompt", "half a pair \ud83d", "the prompt is not valid Unicode text"),
    ("max_tokens", 0, "max-tokens must be at least 1, not 0"),
    ("max_tokens", -3, "max-tokens must be at least 1, not -3"),
    ("stop", ("end", ""), "a stop string is empty"),
    ("seed", -1, "seed must be 0 to 2^64 - 1, not -1"),
    ("seed", 2**64, "seed must be 0 to 2^64 - 1"),
]
BAD = [
    *((SamplingParams, {}, *case) for case in BAD_SAMPLING),
    *((ChainOptions, {}, *case) for case in BAD_OPTIONS),
    *((CandidateOptions, {}, *case) for case in BAD_CANDIDATES),
    *((CompressedOptions, {}, *case) for case in BAD_UNCERTAINTY),
    *((TsltOptions, {}, *case) for case in BAD_SPARSE),
    (TsltOptions, {"wire": "tight"}, "draft_precision", 32, "wire tight needs a draft precision of 8 or 16 bits"),
    *((TsltTreeOptions, {}, *case) for case in (*BAD_SPARSE, *BAD_TREES)),
    *((CoupledTreeOptions, {}, *case) for case in BAD_TREES[1:]),  # none at all is a tree that grows
    *((CoupledOptions, {}, *case) for case in BAD_LENGTHS),
    *((TsltOptions, {}, *case) for case in BAD_LENGTHS),
    *((CoupledOptions, {}, *case) for case in BAD_STREAM),
    *((ModelConfig, {"name": "toy"}, *case) for case in BAD_MODEL),
    *((Limits, {}, *case) for case in BAD_LIMITS),
    *((ServeConfig, {}, *case) for case in BAD_SERVE),
    *((Request, {"prompt": "hello"}, *case) for case in BAD_REQUEST),
]


@pytest.mark.parametrize(("kind", "fields", "name", "value", "sentence"), BAD)
def test_a_value_that_does_not_fit(kind: type, fields: dict, name: str, value: object, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        kind(**{**fields, name: value})
    assert sentence in str(caught.value)


GOOD = [
    (SamplingParams, {"temperature": 0.0, "top_k": 0, "top_p": 1e-9, "min_p": 0.0, "repetition_penalty": 1e-3}),
    (SamplingParams, {"temperature": 100.0, "top_k": 10**9, "top_p": 1.0, "min_p": 1.0, "presence_penalty": -2.0}),
    (SamplingParams, {"logit_bias": ((0, -100.0), (0, 100.0))}),
    (ChainOptions, {"draft_length": 1, "draft_precision": 16}),
    (ChainOptions, {"draft_length": 0}),
    (CoupledOptions, {"draft_length": 0, "ahead": 0}),
    (CoupledOptions, {"draft_length": MAX_DRAFT_LENGTH, "ahead": MAX_AHEAD}),
    (CoupledOptions, {"ahead": -1, "patience": 0.0, "objective": "battery"}),
    (CoupledOptions, {"patience": LONGEST_PATIENCE, "objective": "data"}),
    (CoupledOptions, {"patience": LOCKSTEP, "objective": "cloud"}),
    (SplitOptions, {"draft_length": MAX_DRAFT_LENGTH, "draft_precision": 32, "precision": 32}),
    (CandidateOptions, {"candidates": 31, "iterations": 64}),
    (TsltOptions, {"truncate": "p=1", "wire": "tight", "draft_precision": 16, "draft_length": MAX_DRAFT_LENGTH}),
    (TsltTreeOptions, {"truncate": "off", "expansion": "63", "draft_precision": 32}),
    (CoupledTreeOptions, {"expansion": "1"}),
    (CompressedOptions, {"draws": 1, "uncertain": 0.0, "top_k": 1}),
    (ModelConfig, {"name": "toy", "context": 16, "threads": 1024}),
    (ModelConfig, {"name": "toy", "context": 2**20, "threads": 0}),
    (ServeConfig, {"port": 0}),
    (ServeConfig, {"port": 65535}),
    (Request, {"prompt": "été 🙂", "max_tokens": 1, "stop": (), "seed": 2**64 - 1}),
    (Request, {"prompt": " ", "seed": 0, "stop": ("\n",)}),
]


@pytest.mark.parametrize(("kind", "fields"), GOOD)
def test_the_borders_fit(kind: type, fields: dict) -> None:
    made = kind(**fields)
    assert all(getattr(made, name) == value for name, value in fields.items())


@pytest.mark.parametrize("made", [SamplingParams(), NoOptions(), ChainOptions(), Limits(), ModelConfig("x"), ServeConfig()])
def test_nothing_changes_afterwards(made: object) -> None:
    for name in [field.name for field in dataclasses.fields(made)]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, 1)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (SamplingParams(), False),
        (SamplingParams(temperature=0.0, top_k=5, top_p=0.5, min_p=0.1, logit_bias=((1, 2.0),)), False),
        (SamplingParams(repetition_penalty=1.1), True),
        (SamplingParams(presence_penalty=-0.1), True),
        (SamplingParams(frequency_penalty=0.1), True),
    ],
)
def test_penalties_are_noticed(params: SamplingParams, expected: bool) -> None:
    assert params.has_penalties is expected


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: Request(5), "prompt must be text, not 5"),
        (lambda: Request(b"x"), "prompt must be text, not b'x'"),
        (lambda: Request("x", max_tokens="5"), "max_tokens must be a whole number, not '5'"),
        (lambda: Request("x", max_tokens=5.5), "max_tokens must be a whole number, not 5.5"),
        (lambda: Request("x", seed=True), "seed must be a whole number, not True"),
        (lambda: Request("x", chat=1), "chat must be true or false, not 1"),
        (lambda: Request("x", stop=(1,)), "stop must be text, or several texts"),
        (lambda: Request("x", sampling={"temperature": 0}), "sampling must be SamplingParams"),
        (lambda: SamplingParams(temperature="0"), "temperature must be a number, not '0'"),
        (lambda: SamplingParams(top_k=2.5), "top_k must be a whole number, not 2.5"),
        (lambda: Limits(max_tokens="x"), "max_tokens must be a whole number, not 'x'"),
        (lambda: Timeouts(lost="x"), "lost must be a number, not 'x'"),
        (lambda: ServeConfig(port="8907"), "port must be a whole number, not '8907'"),
    ],
)
def test_values_of_another_kind(made: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}"):
        made()


def test_one_stop_string_is_not_its_letters() -> None:
    assert Request("x", stop="nG").stop == ("nG",)  # type: ignore[arg-type]
