"""docs/protocol.md says what the code does: messages, maps, codes, drawing, examples."""

import ast
import dataclasses
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec import inspect

import antiphon
from antiphon import vocabulary
from antiphon.config import Limits, SamplingParams
from antiphon.core.chance import answer_key
from antiphon.core.distributions import one_hot
from antiphon.core.mixture.consult import AskAll, AskChunk, AskScores
from antiphon.core.mixture.scores import SCORES, SUMS, ZERO, Report
from antiphon.core.noise import Noise
from antiphon.core.resampling import MAX_CANDIDATES
from antiphon.core.rounding import FloatRatios, LogRatios, from_fixed_point
from antiphon.core.stream import AUTO, LOCKSTEP, OBJECTIVES, RUN_AHEAD
from antiphon.methods import WITH_DOCUMENTS, WITHOUT_DOCUMENTS
from antiphon.methods.baselines.cu_hlm import CompressedOptions
from antiphon.methods.baselines.u_hlm import UncertaintyOptions
from antiphon.methods.mixture.cloud import KEPT
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.methods.speculative.options import (
    AUTO_DRAFT_LENGTH,
    LONGEST_PATIENCE,
    MAX_AHEAD,
    MAX_DRAFT_LENGTH,
    MAX_TREE_NODES,
    NODES_IN_LOCKSTEP,
    NODES_IN_STREAM,
    ChainOptions,
    CoupledOptions,
    CoupledTreeOptions,
    LookingUp,
    SplitOptions,
)
from antiphon.methods.speculative.tslt import TsltOptions
from antiphon.methods.speculative.xcosd_e import CandidateOptions
from antiphon.methods.verifier import REPLAY_WIDTH
from antiphon.transport.websocket import header_bytes
from antiphon.vocabulary import Vocabulary, common_vocabulary
from antiphon.wire import messages as m
from antiphon.wire import session
from antiphon.wire.candidates import COUNT_BITS, Candidate, CandidateCodec
from antiphon.wire.lean import HEAD_BYTES, MAX_COUNT, MAX_ROUND, ROUNDS, SESSIONS, Frames
from antiphon.wire.lean import KINDS as LEAN
from antiphon.wire.packets import PACKET_BYTES, PACKET_HEADER_BYTES, RECORD_BYTES, RECORD_HEADER_BYTES
from antiphon.wire.packing import Writer
from antiphon.wire.scores import COUNT_BITS as SCORES_COUNT_BITS
from antiphon.wire.scores import ScoreCodec
from antiphon.wire.session import CONNECTION, SESSION, SMALL_FRAME_BYTES, Side

SOURCE = Path(antiphon.__file__).parent
DOC = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
KINDS: tuple[type, ...] = typing.get_args(m.Message)


def section(title: str) -> str:
    """What stands under a heading, up to the next of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", DOC, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/protocol.md has no heading {title!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def number(value: int) -> str:
    return f"2^{value.bit_length() - 1}" if value >= 2**16 and value & (value - 1) == 0 else str(value)


def described(kind: inspect.Type) -> str:
    """A field's type and bounds, in the words of the page."""
    match kind:
        case inspect.IntType(ge=least, le=None):
            return f"int, {least} or more"
        case inspect.IntType(ge=least, le=most):
            return f"int, {least} to {number(most)}"
        case inspect.FloatType(ge=least, le=None) if least is not None:
            return f"float, {least} or more"
        case inspect.FloatType(ge=least, le=most) if least is not None:
            return f"float, {least} to {number(int(most))}"
        case inspect.StrType(max_length=None):
            return "str"
        case inspect.StrType(max_length=most):
            return f"str, at most {number(most)}"
        case inspect.BytesType(min_length=None, max_length=None):
            return "bytes"
        case inspect.BytesType(min_length=least, max_length=most):
            return f"bytes, {most}" if least == most else f"bytes, at most {number(most)}"
        case inspect.VarTupleType(item_type=item, max_length=most):
            return f"array{'' if most is None else f', at most {number(most)}'} of {described(item)}"
        case inspect.TupleType(item_types=items):
            return f"array, {len(items)} of {described(items[0])}"
        case inspect.DictType(key_type=key, value_type=value, max_length=most):
            return f"map, at most {most} of {described(key)} to {described(value)}"
        case inspect.DataclassType(cls=cls):
            return f"map, {cls.__name__}"
        case inspect.UnionType():
            return "int, float, str or bool"
    return {inspect.FloatType: "float", inspect.BoolType: "bool"}[type(kind)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_with_its_tag_and_its_fields_in_order(kind: type) -> None:
    text = section(f"{kind.__name__}, tag {kind.__struct_config__.tag}")
    fields = [(field.name, described(field.type)) for field in inspect.type_info(kind).fields]
    assert [tuple(row[:2]) for row in rows(text)] == fields
    assert fields or "No fields." in text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_who_sends_a_message_where(kind: type) -> None:
    text = section(f"{kind.__name__}, tag {kind.__struct_config__.tag}").strip()
    where = {"connection": CONNECTION, "session": SESSION}
    sides = {place: {side for _, side, sent in table if sent is kind} for place, table in where.items()}
    names = {frozenset({Side.DEVICE}): "device", frozenset({Side.CLOUD}): "cloud", frozenset(Side): "either"}
    said = "; ".join(f"{names[frozenset(found)]}, {place}" for place, found in sides.items() if found)
    assert text.lower().startswith(said), said


def test_nothing_else_is_described_as_a_message() -> None:
    told = re.findall(r"^### (\w+), tag (\d+)$", DOC, re.MULTILINE)
    assert told == [(kind.__name__, str(kind.__struct_config__.tag)) for kind in KINDS]


@pytest.mark.parametrize("kind", [Limits, SamplingParams])
def test_the_maps(kind: type) -> None:
    told = [(row[0], row[2]) for row in rows(section(kind.__name__))]
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    assert told == [(name, "[]" if default == () else str(default)) for name, default in defaults.items()]


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == name:
            yield node


def codes_in(path: Path) -> Iterator[str]:
    """Every code that a file raises or sends, spelled out in it; that of a ProtocolError without one is its default."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for call in calls(tree, "ProtocolError"):
        given = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "code")]
        for value in given:
            assert isinstance(value, ast.Constant), f"{path.name}:{call.lineno}: a code that a reader cannot find"
        yield from (value.value for value in given) if given else ["bad-frame"]
    for call in calls(tree, "Failure"):
        yield from (value.value for value in call.args[:1] if isinstance(value, ast.Constant))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "failure_code":
            yield from (sent.value.value for sent in ast.walk(node) if isinstance(sent, ast.Return))


def test_every_error_code() -> None:
    """Those of `bench` aside: its played halves meet no other implementation."""
    paths = sorted(SOURCE.rglob("*.py"))
    raised = {code for path in paths for code in codes_in(path)}
    told = [row[0] for row in rows(section("Errors"))]
    assert len(raised) > 8
    assert sorted(told) == sorted(raised)


def test_the_version() -> None:
    assert f"described here is **{m.VERSION}**" in DOC.replace("\n", " ")
    assert f"this page is {m.VERSION}" in DOC


def test_the_drawing_is_that_of_the_code() -> None:
    found = re.search(r"^ +NEW -Hello->.*?-> ENDED$", session.__doc__ or "", re.DOTALL | re.MULTILINE)
    assert found is not None
    assert found[0] in DOC


def test_numbers_that_the_text_names() -> None:
    words = DOC.replace("\n", " ")
    assert f"each of {m.PART_BYTES} bytes" in words
    assert f"signed, 1 to {vocabulary.MAX_TOKENS} |" in words
    assert f"at most {vocabulary.MAX_BYTES} bytes uncompressed" in words
    assert f"a frame has at most {SMALL_FRAME_BYTES} bytes" in words
    assert f"their number in {COUNT_BITS} bits, 0 to {MAX_CANDIDATES}," in words
    assert f"2^(-{LogRatios().octaves} c / 65534)" in words
    assert f"With `draft_length` 0 (auto) the bound is {AUTO_DRAFT_LENGTH} in its place" in words
    assert f"at most `draft_length` of them ({AUTO_DRAFT_LENGTH} if that is 0)" in words
    assert f"the cloud stops {RUN_AHEAD} tokens beyond what it knows the device to have" in words
    assert f"`committed` in passes of at most {REPLAY_WIDTH} tokens" in words


def test_the_options() -> None:
    told = {row[0]: row[2] for row in rows(section("Options"))}
    chain, judged, coupled = CandidateOptions(), UncertaintyOptions(), CoupledOptions()
    lengths = f"an int from 0 to {MAX_DRAFT_LENGTH} (without it {chain.draft_length}, in `coupled` {coupled.draft_length})"
    assert told["draft_length"].startswith(lengths)
    assert told["draft_length"].endswith(f"0 is auto, as many as pay, at most {AUTO_DRAFT_LENGTH}")
    assert told["ahead"].startswith(f"an int from 0 to {MAX_AHEAD}, or {coupled.ahead}, auto (without it)")
    assert told["patience"].startswith("a float")
    assert f", 0 to {LONGEST_PATIENCE:.0f}; " in told["patience"]
    assert told["patience"].endswith(f"{AUTO:.0f} is auto (without it), {LOCKSTEP} is lockstep")
    assert coupled.patience == AUTO
    objectives = [f"`{name}` (without it)" if name == coupled.objective else f"`{name}`" for name in OBJECTIVES]
    assert f"`{told['objective']}".startswith(f"{', '.join(objectives[:-1])} or {objectives[-1]}: ")
    others = "` or `".join(typing.get_args(LookingUp)[1:])
    assert f"`{told['lookup']}".startswith(f"`{coupled.lookup}` (without it), `{others}`")
    tree = CoupledTreeOptions()
    assert told["nodes"].startswith(f"an int from 0 to {MAX_TREE_NODES} (without it {tree.nodes})")
    assert told["nodes"].endswith(f"0: {NODES_IN_LOCKSTEP} in lockstep, else {NODES_IN_STREAM}")
    assert told["draft_precision"].startswith(f"16 or 32 (without it {chain.draft_precision})")
    assert told["precision"].startswith(f"16 or 32 (without it {chain.precision})")
    assert told["candidates"].startswith(f"an int from 0 to {MAX_CANDIDATES} (without it {chain.candidates})")
    assert told["iterations"].startswith(f"an int from 1 to 64 (without it {chain.iterations})")
    assert told["draws`, `uncertain"].startswith(f"an int ({judged.draws}), a float ({judged.uncertain})")
    assert told["top_k"].startswith(f"an int from 1 to 4096 (without it {CompressedOptions().top_k})")


def test_every_method_has_its_draft_length_in_the_table() -> None:
    told = next(row[1] for row in rows(section("Options")) if row[0] == "draft_length")
    fields = {name: {field.name for field in dataclasses.fields(method.options)} for name, method in WITHOUT_DOCUMENTS.items()}
    having = {name for name, own in fields.items() if "draft_length" in own}
    assert set(re.findall(r"[a-z-]+", told)) == having
    lengths = {kind.__name__: kind().draft_length for kind in (ChainOptions, SplitOptions, CandidateOptions, TsltOptions)}
    assert set(lengths.values()) == {3}, "one default for all but `coupled`, as the table says"


def test_the_options_of_mixing_methods() -> None:
    told = [row[:2] for row in rows(section("Options of mixing methods"))]
    assert told == [[field.name, str(field.default)] for field in dataclasses.fields(MixtureOptions)]


def test_what_the_cloud_has_no_use_for() -> None:
    """The cloud's halves and its service read the other options, and none of these."""
    table = rows(section("Options of mixing methods"))
    unused = {row[0] for row in table if row[2].endswith("the cloud has no use for it")}
    files = ("methods/mixture/cloud.py", "methods/mixture/dragon.py", "methods/baselines/drdg_sw.py", "cloud/service.py")
    sources = "".join((SOURCE / file).read_text() for file in files)
    read = {row[0] for row in table if re.search(rf"options\.{row[0]}\b", sources)}
    assert read == {row[0] for row in table} - unused


def test_numbers_of_mixing_methods() -> None:
    words = DOC.replace("\n", " ")
    assert (SCORES.top, SCORES.step, SUMS.top, SUMS.step) == (0, 1 / 2048, 38, 1 / 1024)
    assert "16 bits c for exp(-c / 2048), 65535 for 0" in words
    assert "16 bits c for exp(38 - c / 1024), 65535 for 0" in words
    assert ZERO == 65535
    assert f"Scores are kept to {KEPT} steps behind" in words
    assert f"their number in {SCORES_COUNT_BITS} bits, the tokens" in words
    assert f"A *report* is the number of scores in {SCORES_COUNT_BITS} bits" in words


def test_which_methods_mix() -> None:
    told = re.search(r"Of the methods (.*?) \(`crcg` needs no cloud\)", DOC.replace("\n", " "))
    assert told is not None
    assert set(re.findall("`([a-z-]+)`", told[1])) == {name for name, method in WITH_DOCUMENTS.items() if method.cloud}
    assert WITH_DOCUMENTS["crcg"].cloud is None


def test_lean_frames() -> None:
    words, table = section("Lean frames").replace("\n", " "), section("Lean frames")
    assert re.findall(r"`(\w+)`", table.split("| bits | what |")[1].split("\n")[0]) == [kind.__name__ for kind in LEAN]
    assert rows(table)[1][2:] == [str(place) for place in range(len(LEAN))]
    assert sum(int(row[0]) for row in rows(table) if row[0].isdecimal()) == 8 * HEAD_BYTES
    assert f"count is at most {MAX_COUNT}," in words
    assert f"less than {SESSIONS} below it" in words
    assert f"less than {ROUNDS} above it" in words
    assert f"A round above {number(MAX_ROUND)} " in words


def test_what_packets_cost() -> None:
    words = section("What is counted").replace("\n", " ")
    assert f"{RECORD_HEADER_BYTES} bytes for each record of up to {RECORD_BYTES} (header 5, type 1, tag 16)" in words
    assert f"{PACKET_HEADER_BYTES} for each packet of up to {PACKET_BYTES} (IPv4 20, TCP 20, timestamps 12)" in words
    assert f"one packet, and {RECORD_HEADER_BYTES + PACKET_HEADER_BYTES} bytes more" in words


def test_what_a_header_costs() -> None:
    assert "2 bytes, 2 more for a frame of 126 to 65535 bytes or 8 more beyond, and 4 more" in DOC.replace("\n", " ")
    assert [header_bytes(size, from_device=False) for size in (125, 126, 65535, 65536)] == [2, 4, 4, 10]
    assert header_bytes(1, from_device=True) == 6


def examples() -> Iterator[bytes]:
    """The bytes of each example of the page, in their order, made by the code."""
    yield m.encode(m.Envelope(0, m.Hello(m.VERSION, "x/1", "", b"")))
    yield m.encode(m.Envelope(1, m.Cancel()))
    yield from examples_of_lean_frames()
    yield payload([(1, 2), (2, 2)], [[0, 65535, 0], [16384, 16384, 32767]])
    yield payload([(4, 3), (1, 2), (2, 2), (32768, 16), (16384, 16)], [])
    yield payload([(4, 3)], [])
    dense, sparse = np.array([1, 8, 4, 2, 1]) / 16, np.array([0, 4, 2, 1, 1]) / 8
    for probs, ratios in ((dense, FloatRatios()), (sparse, FloatRatios()), (one_hot(1, 5), LogRatios())):
        writer = Writer()
        writer.distribution(probs, ratios)
        yield writer.finish()
    writer = Writer()
    cloud = Vocabulary((b"ab", b"a", b"", b"c", b"b"), np.zeros(5, np.uint8), np.ones(5, bool), 2, (2,))
    device = Vocabulary((b"b", b"", b"a"), np.zeros(3, np.uint8), np.ones(3, bool), 1, (1,))
    CandidateCodec(common_vocabulary(device, cloud), 16).write(writer, [Candidate(1, 512, True), Candidate(1, 512)])
    yield writer.finish()
    yield from examples_of_scores()


def examples_of_lean_frames() -> Iterator[bytes]:
    up, down = Frames(), Frames()
    for frames in (up, down):
        frames.crossed(m.Envelope(1, m.Cancel()))
    yield up.pack(m.Envelope(1, m.Draft(0, 2, b"\xab\xcd")))
    yield down.pack(m.Envelope(1, m.Verdict(0, 1, b"\x04")))
    down.crossed(m.Envelope(1, m.Verdict(200, 0, b"")))
    yield down.pack(m.Envelope(1, m.Verdict(258, 15, b"")))
    yield down.pack(m.Envelope(1, m.Tokens(b"\x11\x22")))
    yield up.pack(m.Envelope(1, m.Progress(7)))
    down.crossed(m.Envelope(301, m.Opened(0)))
    yield down.pack(m.Envelope(300, m.Verdict(1, 2, b"\x04")))


def examples_of_scores() -> Iterator[bytes]:
    codec = ScoreCodec(5, 3)
    yield codec.report(Report({4: 513, 1: ZERO}, 7))
    for question in (AskScores((4, 1)), AskChunk(64), AskAll()):
        yield codec.question(question)
    yield codec.tokens([4, 1])


def payload(numbers: list[tuple[int, int]], counts: list[list[int]]) -> bytes:
    writer = Writer()
    for value, bits in numbers:
        writer.number(value, bits)
    for row in counts:
        writer.probabilities(from_fixed_point(np.array(row), 16), 16)
    return writer.finish()


def test_the_examples() -> None:
    told = re.findall(r"^    ((?:[0-9a-f]{2} )*[0-9a-f]{2})$", DOC, re.MULTILINE)
    assert [bytes.fromhex(line) for line in told] == list(examples())


def test_the_known_answers_of_the_noise() -> None:
    keys, draws = (rows(table) for table in re.findall(r"(?:^\|.*\n)+", section("The noise"), re.MULTILINE))
    assert len(keys) == 3
    for seed, prompt, chat, words in keys:
        assert answer_key(int(seed), prompt, chat=chat == "1") == joined(words)
    assert len(draws) == 4
    for words, position, token, bits in draws:
        (uniform,) = Noise(joined(words)).uniform(int(position), np.array([int(token)], dtype=np.int32))
        assert uniform == (int(bits, 16) + 0.5) / 2**52


def joined(words: str) -> int:
    """A key of its four words."""
    return sum(int(word, 16) << 32 * place for place, word in enumerate(words.split()))


def test_the_parameters_are_maps_by_name() -> None:
    assert isinstance(msgspec.msgpack.decode(msgspec.msgpack.encode(Limits())), dict)
