"""Options of methods: declared once, beside the method, and read from `name=value`."""

import math
from dataclasses import dataclass, fields

import pytest

from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.errors import UsageError
from antiphon.methods import ALL_METHODS, PROBES
from antiphon.methods.baselines.cu_hlm import CompressedOptions
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.tslt_tree import TsltTreeOptions
from antiphon.methods.speculative.xcosd_e import CandidateOptions
from antiphon.options import NoOptions, options_of, read_options

EVERY = {**ALL_METHODS, **PROBES}


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_told_with_its_default(name: str) -> None:
    kind = EVERY[name].options
    told = options_of(kind)
    assert [one.name for one in told] == [field.name for field in fields(kind)]
    made = kind()
    for one in told:
        assert one.help, one.name
        assert one.default == getattr(made, one.name)
        assert one.value(one.shown) == one.default


@pytest.mark.parametrize("name", EVERY)
def test_what_is_shown_makes_the_defaults(name: str) -> None:
    """What a person reads of a method, written back as it stands."""
    kind = EVERY[name].options
    texts = [f"{one.name}={one.shown}" for one in options_of(kind)]
    assert kind(**read_options(kind, texts, name)) == kind()


@pytest.mark.parametrize("name", EVERY)
def test_every_method_says_how_many_drafts_a_round_has(name: str) -> None:
    method = EVERY[name]
    most = method.options().max_drafts
    reads_drafts = method.cloud is not None and method.drafts and not method.mixes
    assert (most > 0) == reads_drafts
    assert most <= 63


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (CoupledOptions, "draft_length=auto", 0),
        (CoupledOptions, "draft-length = 4", 4),
        (CoupledOptions, "ahead=auto", -1),
        (CoupledOptions, "patience=auto", AUTO),
        (CoupledOptions, "patience=lockstep", LOCKSTEP),
        (CoupledOptions, "patience=20", 20.0),
        (CoupledOptions, "objective=data", "data"),
        (CandidateOptions, "candidates=auto", 0),
        (CandidateOptions, "as_paper=yes", True),
        (TsltTreeOptions, "replacement=True", True),
        (TsltTreeOptions, "truncate=k=20", "k=20"),
        (CompressedOptions, "uncertain=0.25", 0.25),
        (CompressedOptions, "top_k=9", 9),
        (MixtureOptions, "gate=off", math.inf),
        (MixtureOptions, "gate=inf", math.inf),
        (MixtureOptions, "timeout=auto", 0.0),
        (MixtureOptions, "timeout=0.25", 0.25),
        (MixtureOptions, "prompt_format=text", "text"),
        (MixtureOptions, "timeout_decay=halving", "halving"),
    ],
)
def test_a_text_is_read_as_the_field_is_typed(kind: type, text: str, value: object) -> None:
    ((name, read),) = read_options(kind, [text], "any").items()
    assert (read, type(read)) == (value, type(value))
    assert getattr(kind(**{name: read}), name) == value


OF_COUPLED = ", ".join(one.name for one in options_of(CoupledOptions))


def test_the_last_of_two_counts() -> None:
    assert read_options(CoupledOptions, ["ahead=1", "ahead=2"], "coupled") == {"ahead": 2}


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (CoupledOptions, "ahead", "an option is written name=value, not 'ahead'"),
        (CoupledOptions, "ahead=", "ahead must be a whole number or auto, not ''"),
        (CoupledOptions, "ahead=3.5", "ahead must be a whole number or auto, not '3.5'"),
        (CoupledOptions, "draft_length=few", "draft_length must be a whole number or auto, not 'few'"),
        (CoupledOptions, "aheads=3", f"the method x has no option 'aheads' (did you mean ahead?): it has {OF_COUPLED}"),
        (CoupledOptions, "zebra=3", f"the method x has no option 'zebra': it has {OF_COUPLED}"),
        (CoupledOptions, "patience=long", "patience must be a number, auto or lockstep, not 'long'"),
        (CoupledOptions, "patience=nan", "patience must be a number, auto or lockstep, not 'nan'"),
        (CoupledOptions, "objective=haste", "objective must be speed, cloud, data or battery, not 'haste'"),
        (NoOptions, "ahead=3", "the method x has no option 'ahead', nor any other"),
        (TsltTreeOptions, "replacement=1", "replacement must be true or false, not '1'"),
        (MixtureOptions, "gate=shut", "gate must be a number or off, not 'shut'"),
        (MixtureOptions, "gate=nan", "gate must be a number or off, not 'nan'"),
        (MixtureOptions, "realign=firm", "realign must be soft or hard, not 'firm'"),
    ],
)
def test_what_cannot_be_read(kind: type, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(kind, [text], "x")
    assert str(caught.value) == sentence


@dataclass(frozen=True, slots=True)
class Plain:
    """Options of a method from elsewhere, without help."""

    loud: bool = True
    pitch: int = 3


def test_options_need_no_help() -> None:
    loud, pitch = options_of(Plain)
    assert (loud.kind, loud.shown, loud.help, pitch.shown) == (bool, "true", "", "3")
    assert read_options(Plain, ["loud=off", "pitch=-1"], "plain") == {"loud": False, "pitch": -1}
