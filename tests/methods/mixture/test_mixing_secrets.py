"""What leaves the device: the question, committed tokens and queried ids. No message can carry more, and none does."""

import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect

from antiphon.config import SamplingParams
from antiphon.methods import WITH_DOCUMENTS
from antiphon.wire import messages as m
from antiphon.wire.scores import ScoreCodec
from antiphon.wire.session import CONNECTION, SESSION, Side
from support.mixtures import PIECES, Crossed, End, Reader, Shelf, Tap, World, answer, question, world

CODEC = ScoreCodec(len(PIECES), 7)
CANARY = "my cat is called Balthasar Q"
"""Stands in the device's documents and nowhere else."""

EVIDENCE = ["concord", "concord-nosystem", "concord-nocomm", "dragon", "drdg-tw", "drdg-sw"]

# The schema

_SAMPLING = "how tokens are drawn, as the user set it before any document was looked for"
CARRIED = {
    ("Hello", "version"): "of the protocol",
    ("Hello", "agent"): "of the program",
    ("Hello", "model"): "the name of a model",
    ("Hello", "vocabulary"): "the fingerprint of a tokenizer",
    ("Common", "digest"): "of two tokenizers",
    ("Common", "size"): "of two tokenizers",
    ("CommonMap", "members"): "of two tokenizers",
    ("Open", "method"): "a name",
    ("Open", "options"): "of the method, before any document was looked for: names to single values",
    ("Open", "sampling.repetition_penalty"): _SAMPLING,
    ("Open", "sampling.presence_penalty"): _SAMPLING,
    ("Open", "sampling.frequency_penalty"): _SAMPLING,
    ("Open", "sampling.logit_bias"): _SAMPLING,
    ("Open", "sampling.temperature"): _SAMPLING,
    ("Open", "sampling.top_k"): _SAMPLING,
    ("Open", "sampling.top_p"): _SAMPLING,
    ("Open", "sampling.min_p"): _SAMPLING,
    ("Open", "prompt"): "the question: what the cloud looks for in its own library",
    ("Open", "chat"): "how the prompt is written",
    ("Open", "max_tokens"): "how long the answer may be",
    ("Open", "seed"): "of the noise that both ends share",
    ("Open", "committed"): "tokens of the answer",
    ("Ask", "epoch"): "which of the cloud's own lines",
    ("Ask", "step"): "a position in the answer",
    ("Ask", "payload"): "token ids, or a count (`wire.scores`: a kind, a count, ids; nothing else is read)",
    ("Realign", "epoch"): "how often the answer went another way than the cloud's line",
    ("Realign", "step"): "a position in the answer",
    ("Realign", "count"): "how many tokens follow",
    ("Realign", "payload"): "tokens of the answer",
    ("Progress", "step"): "how long the answer is",
    ("Failure", "code"): "a word of the protocol",
    ("Failure", "sentence"): "what was wrong with a message of the cloud",
    ("Goodbye", "reason"): "a sentence",
    ("Ping", "data"): "of a measurement: zeros",
    ("Pong", "data"): "what the cloud's own ping had",
    # Rounds of the methods that read no documents; the cloud's half of one that mixes refuses these messages.
    ("Draft", "round"): "no mixture",
    ("Draft", "count"): "no mixture",
    ("Draft", "payload"): "no mixture",
    ("Probe", "width"): "no mixture",
    ("Probe", "reread"): "no mixture",
    ("Probe", "silent"): "no mixture",
    ("Probe", "session"): "no mixture",
    ("Probe", "count"): "no mixture",
    ("Probe", "payload"): "no mixture",
    ("Retry", "round"): "no mixture",
}
"""Every field of every message that a device may send, and why it is none of its scores, weights, documents or passages."""


def fields(kind: inspect.Type, path: str = "") -> Iterator[str]:
    """The fields of a message, those of maps within it by their own names."""
    match kind:
        case inspect.StructType(fields=inner) | inspect.DataclassType(fields=inner):
            for field in inner:
                yield from fields(field.type, f"{path}.{field.name}" if path else field.name)
        case _:
            yield path


def from_the_device() -> set[type]:
    return {kind for _, side, kind in [*CONNECTION, *SESSION] if side is Side.DEVICE}


def test_every_field_that_a_device_can_send_is_known() -> None:
    found = {(kind.__name__, path) for kind in from_the_device() for path in fields(inspect.type_info(kind)) if path}
    assert found == set(CARRIED)


def test_options_are_single_values() -> None:
    """No list, no text without a bound of its own but in names: no room for a distribution or a document."""
    (options,) = [field.type for field in inspect.type_info(m.Open).fields if field.name == "options"]
    assert {type(kind) for kind in options.value_type.types} == {
        inspect.IntType,
        inspect.FloatType,
        inspect.StrType,
        inspect.BoolType,
    }
    for method in WITH_DOCUMENTS.values():
        assert all(isinstance(getattr(method.options(), name), int | float | str) for name in method.options.__slots__)


def test_only_the_cloud_sends_scores_weights_and_passages() -> None:
    for kind in (m.Evidence, m.Supplement, m.Retrieved, m.Passages):
        assert kind not in from_the_device()


# What crosses


class Reciting(Reader):
    """Once it has begun with the canary it goes on with it; before that it says anything, led there by its documents."""

    def logits(self, tokens: Any) -> Any:
        scores = super().logits(tokens).copy()
        written = self.vocabulary.join(tokens).decode().split("Answer:")[-1]
        scores[self.tokenize(CANARY[len(written) :])[0] if len(written) < len(CANARY) else 0] = 99.0
        return scores


def private(seed: int, *, reciting: bool = False, clouds: int = 1) -> World:
    there = world(seed, clouds)
    model = Reciting(seed) if reciting else there.device.model
    there.device = End(model, Shelf((f"{CANARY}. So it is.", 1.25), ("nothing of interest", 0.5)))
    return there


def watched(there: World, request: Any) -> tuple[list[Crossed], str, list[int]]:
    """All frames of an answer, both ways, with the handshake; its text and its tokens."""
    frames: list[Crossed] = []
    there.wrap = lambda transport, end, number: Tap(transport, frames)
    told = answer(there, request)
    return frames, told.result.answer.text, told.numbers


def bits(data: bytes) -> str:
    """A payload as it is packed: the lowest bit of each byte first."""
    return "".join(f"{byte:08b}"[::-1] for byte in data)


class Search:
    """Finds a text in frames: its bytes, or its tokens one after the other at any bit, as any payload packs them."""

    def __init__(self, frames: list[Crossed]) -> None:
        self._bytes = b"\xff\xff\xff".join(crossed.frame for crossed in frames)  # in no pattern
        self._bits = " ".join(bits(crossed.frame) for crossed in frames)
        self._tokenizer = Reader(0)

    def holds(self, text: str) -> bool:
        ids = self._tokenizer.tokenize(text)
        packed = "".join(f"{token:07b}"[::-1] for token in ids)
        wide = [b"".join(struct.pack(form, token) for token in ids) for form in ("<H", ">H", "<I", ">I", "B")]
        return text.encode() in self._bytes or packed in self._bits or any(data in self._bytes for data in wide)


def shingles(text: str, size: int = 8) -> list[str]:
    return [text[start : start + size] for start in range(len(text) - size + 1)]


@pytest.mark.core(2)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", [*EVIDENCE, "drcg"])
def test_a_canary_in_private_documents_crosses_no_link(method: str, temperature: float) -> None:
    """Not in whole and not in part, in no frame, either way, the handshake included."""
    for seed in range(2):
        there = private(seed, clouds=1 if method in ("dragon", "drcg") else 2)
        frames, text, _ = watched(there, question(method, temperature=temperature, tokens=24, first=2))
        parts = [part for part in shingles(CANARY) if part not in text]
        assert len(parts) == len(shingles(CANARY))
        search = Search(frames)
        assert not [part for part in parts if search.holds(part)]


@pytest.mark.parametrize("method", ["concord", "dragon"])
def test_the_canary_would_be_found(method: str) -> None:
    """A device that commits it into its answer tells it to the cloud, and there the same search finds it."""
    there = private(1, reciting=True)
    frames, text, _ = watched(there, question(method, tokens=len(CANARY), timeout=0.001, ahead=1, realign="hard"))
    assert CANARY[:16] in text
    search = Search([crossed for crossed in frames if crossed.up])
    assert len([part for part in shingles(CANARY, 3) if search.holds(part)]) >= 3


@pytest.mark.core(2)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", EVIDENCE)
def test_every_bit_that_leaves_the_device_is_accounted_for(method: str, temperature: float) -> None:
    """Of the messages of a session: the question, tokens of the answer, ids asked for, counts. There is no other bit."""
    for seed in range(3):
        there, request = world(seed), question(method, temperature=temperature, tokens=24, first=1, timeout=0.05)
        frames, _, numbers = watched(there, request)
        up = [crossed.message for crossed in frames if crossed.up and crossed.session]
        assert {type(message) for message in up} <= {m.Open, m.Ask, m.Realign, m.Progress, m.Cancel}
        epoch = 0
        for message in up:
            match message:
                case m.Open():
                    assert (message.prompt, message.committed, message.seed) == (request.prompt, (), request.seed)
                    assert message.sampling == request.sampling
                    assert message.options == {name: getattr(request.options, name) for name in message.options}
                case m.Realign():
                    epoch += 1
                    assert message.epoch == epoch
                    told = numbers[message.step : message.step + message.count]
                    assert message.payload == CODEC.tokens(told)
                case m.Ask():
                    assert message.epoch == epoch
                    assert message.payload == CODEC.question(CODEC.read_question(message.payload))
                case m.Progress():
                    assert message.step <= len(numbers)


def test_what_the_documents_weigh_stays_on_the_device() -> None:
    """The cloud's weight comes down; the device's is in no frame, in no precision, and neither are the shares."""
    there = private(3)
    own, other = there.device.shelf.log_mass, there.clouds[0].shelf.log_mass
    share = 1 / (1 + math.exp(other - own))
    frames, _, _ = watched(there, question("concord", tokens=24))
    for value in (own, share, 1 - share, math.log(share), 1.25, 0.5):
        packed = [struct.pack(form, value) for form in ("<d", ">d", "<f", ">f")]
        sent = b"".join(crossed.frame for crossed in frames if crossed.up and not isinstance(crossed.message, m.Open))
        assert not any(data in sent for data in packed)
        assert not any(data in crossed.frame for crossed in frames for data in packed[:2] if value in (own, share))
    assert any(struct.pack(">d", other) in crossed.frame for crossed in frames if not crossed.up)


def test_what_the_device_says_does_not_depend_on_documents_that_change_nothing() -> None:
    """Other private texts with the same scores for a model that does not mind: the same bytes leave, to the last."""
    sent = []
    for text in (CANARY, "something else entirely, and longer"):
        there = world(2, agree=1.0)  # its scores depend on the last two tokens alone
        there.device = End(there.device.model, Shelf((text, 1.0)))
        frames, _, _ = watched(there, question("concord", tokens=24))
        sent.append([crossed.frame for crossed in frames if crossed.up])
    assert sent[0] == sent[1]


def test_passages_come_down_only_where_they_are_to_be_read_on_the_device() -> None:
    for method in [*EVIDENCE, "drcg"]:
        there = world(1)
        frames, _, _ = watched(there, question(method))
        passages = [one.message.texts for one in frames if isinstance(one.message, m.Passages)]
        assert passages == ([("passage 1 a", "passage 1 b")] if method == "drcg" else [])
        assert any("passage 1" in str(one.message) for one in frames) == (method == "drcg")


def test_sampling_parameters_are_the_users() -> None:
    """Nothing of the device's distributions is folded into what opens a session."""
    frames, _, _ = watched(private(1), question("concord", sampling=SamplingParams(temperature=0.3, top_k=7)))
    (opened,) = [one.message for one in frames if isinstance(one.message, m.Open)]
    assert opened.sampling == SamplingParams(temperature=0.3, top_k=7)
