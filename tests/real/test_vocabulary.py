"""The vocabularies of the two real models: what they have in common, and how any bytes are spelled."""

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.models.base import REPLACEMENT, Model, spell
from antiphon.vocabulary import CommonVocabulary, TokenKind, Vocabulary, common_vocabulary, from_members

pytestmark = pytest.mark.model

REAL = ("smollm2", "gemma3")
SAME_MODEL = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def real(request: pytest.FixtureRequest) -> Model:
    model: Model = request.getfixturevalue(request.param)
    return model


on_both = pytest.mark.parametrize("real", REAL, indirect=True)


@pytest.fixture(scope="module")
def common(smollm2: Model, gemma3: Model) -> CommonVocabulary:
    return common_vocabulary(smollm2.vocabulary, gemma3.vocabulary)


# --- what they have in common


def test_46145_tokens_with_bytes_and_the_end_are_common(common: CommonVocabulary, gemma3: Model) -> None:
    assert (common.size, common.target_size) == (46_146, 262_144)
    assert (common.common_bits, common.target_bits) == (16, 18)
    assert sum(map(bool, common.pieces[: common.size])) == 46_145
    assert common.cloud_ids[0] == gemma3.vocabulary.end  # no bytes, so it comes first


def test_every_common_number_has_the_same_bytes_on_both_sides(common: CommonVocabulary, smollm2: Model, gemma3: Model) -> None:
    device, cloud = smollm2.vocabulary, gemma3.vocabulary
    assert common.device_ids is not None
    assert len(common.device_ids) == common.size
    for device_id, cloud_id in zip(common.device_ids[1:], common.cloud_ids[1 : common.size], strict=True):
        assert device.pieces[device_id] == cloud.pieces[cloud_id] != b""
        assert device.canonical[device_id]
        assert cloud.canonical[cloud_id]
    assert (common.device_ids[0], common.cloud_ids[0]) == (device.end, cloud.end)


def test_the_numbers_are_ordered_by_bytes_and_name_every_cloud_token_once(common: CommonVocabulary) -> None:
    pieces = [b"", *common.pieces[1 : common.size]]
    assert pieces == sorted(set(pieces))
    np.testing.assert_array_equal(np.sort(common.cloud_ids), np.arange(common.target_size))
    np.testing.assert_array_equal(common.numbers[common.cloud_ids], np.arange(common.target_size))
    assert not common.is_identity


def test_nothing_common_was_missed(common: CommonVocabulary, smollm2: Model, gemma3: Model) -> None:
    """Every byte string that both lists spell is common: the two have no bytes without a canonical token."""
    shared = set(smollm2.vocabulary.pieces) & set(gemma3.vocabulary.pieces) - {b""}
    assert shared == set(common.pieces[1 : common.size])


def test_the_cloud_builds_the_same_numbers_from_the_members(common: CommonVocabulary, gemma3: Model) -> None:
    members = common.members()
    assert len(members) < 20_000  # 32 KiB of flags, compressed
    rebuilt = from_members(gemma3.vocabulary, members)
    assert (rebuilt.digest, rebuilt.size, rebuilt.ends) == (common.digest, common.size, common.ends)
    assert rebuilt.pieces == common.pieces
    np.testing.assert_array_equal(rebuilt.cloud_ids, common.cloud_ids)
    assert rebuilt.members() == members


@on_both
def test_a_vocabulary_that_crossed_the_link_is_the_same(real: Model) -> None:
    unpacked = Vocabulary.unpack(real.vocabulary.pack())
    assert unpacked.fingerprint == real.vocabulary.fingerprint
    assert common_vocabulary(unpacked, real.vocabulary).is_identity


# --- the lists


def test_gemma_has_every_byte_and_smollm2_lacks_21(smollm2: Model, gemma3: Model) -> None:
    assert len(gemma3.vocabulary.single_bytes) == 256
    assert missing(smollm2) == bytes.fromhex("04061314161dc0c1f1f2f5f6f7f8f9fafbfcfdfeff")


def test_control_tokens_have_no_bytes(smollm2: Model, gemma3: Model) -> None:
    for model, tokens, empty, ends in ((smollm2, 49_152, 17, (0, 2, 4)), (gemma3, 262_144, 6_250, (1, 106, 212))):
        vocabulary = model.vocabulary
        assert (len(vocabulary), vocabulary.ends) == (tokens, ends)
        without = [token for token, piece in enumerate(vocabulary.pieces) if not piece]
        assert len(without) == empty
        assert set(vocabulary.kinds[without]) <= {TokenKind.CONTROL, TokenKind.UNUSED}
        assert vocabulary.end in vocabulary.ends


def test_gemma_emits_one_of_two_newlines_and_that_is_canonical(gemma3: Model) -> None:
    assert gemma3.tokenize("\n") == [107]
    assert (gemma3.vocabulary.canonical[107], gemma3.vocabulary.canonical[248]) == (True, False)


@on_both
def test_each_byte_string_has_one_canonical_token(real: Model) -> None:
    vocabulary = real.vocabulary
    pieces = [vocabulary.pieces[token] for token in np.flatnonzero(vocabulary.canonical)]
    assert len(set(pieces)) == len(pieces)
    assert set(pieces) == set(vocabulary.pieces) - {b""}


# --- spelling


@cache
def missing(model: Model) -> bytes:
    """The bytes that no token is."""
    return bytes(set(range(256)) - set(model.vocabulary.single_bytes))


def expected(model: Model, data: bytes) -> bytes:
    """What METHODS 1 promises: `data`, each byte without a token as a replacement character."""
    lost = missing(model)
    return b"".join(REPLACEMENT.encode() if byte in lost else bytes([byte]) for byte in data)


def assert_spelled(model: Model, data: bytes) -> None:
    ids = spell(model, data)
    assert model.vocabulary.join(ids) == expected(model, data)
    assert not any(model.vocabulary.kinds[token] == TokenKind.CONTROL for token in ids)


LOST_OR_JOINED = (
    "\0",
    "\x04",
    "\x1d",
    "\x7f",
    "\r\n",
    "\u2581",
    "\u2581\u2581",
    "\ufeff",
    "\ufffd",
    "\U00040000",
    "\U0010ffff",
)
MARKUP = ("<b>", "</s>", "<bos>", "<unused1>", "<0x41>", "<|im_start|>", "<end_of_turn>", "[multimodal]")
PLAIN = (" ", "the ", "12", "e\u0301", "\U0001f469\u200d\U0001f466", "각", "\u3000", "'LL", "\t\t")
TEXT = st.lists(st.text(max_size=8) | st.sampled_from([*LOST_OR_JOINED, *MARKUP, *PLAIN]), max_size=12).map("".join)
TAILS = st.tuples(TEXT.map(str.encode), st.integers(0, 9)).map(lambda drawn: drawn[0][drawn[1] :])
BYTES = st.binary(max_size=40) | st.lists(st.binary(max_size=4) | TAILS, max_size=8).map(b"".join)
"""Anything; and text with cut characters in it."""


@on_both
@given(text=TEXT)
@SAME_MODEL
def test_any_text_is_spelled_byte_for_byte_as_far_as_there_are_tokens(real: Model, text: str) -> None:
    assert_spelled(real, text.encode())


@on_both
@given(data=BYTES)
@SAME_MODEL
def test_any_bytes_are_spelled_too(real: Model, data: bytes) -> None:
    assert_spelled(real, data)


@on_both
@pytest.mark.parametrize("lead", [0xC0, 0xE0, 0xED, 0xF0, 0xF4, 0xF5, 0xFF])
def test_no_ill_formed_character_ends_the_process(real: Model, lead: int) -> None:
    """Four bytes above U+10FFFF would, if they got as far as llama.cpp."""
    for second in range(0x80, 0xC0, 3):
        assert_spelled(real, bytes([lead, second, 0x80, 0xBF]) + b" and on")


@on_both
def test_every_single_token_is_spelled(real: Model) -> None:
    """The cloud's tokens outside C reach the device as their bytes: cut characters, long runs, markup."""
    pieces = real.vocabulary.pieces
    for piece in pieces[:: len(pieces) // 3000]:
        assert_spelled(real, piece)


@on_both
@pytest.mark.parametrize("text", ["a", " ", "\n", "1", "é", "한", "<b>", "\u2581", "\0", "\x04", "\U00040000"])
def test_a_long_run_of_one_thing_is_spelled(real: Model, text: str) -> None:
    assert_spelled(real, (text * 4000).encode())


@on_both
def test_plain_text_takes_the_tokenizers_own_ids(real: Model) -> None:
    text = "The two choirs stood on either side of the nave.\n\n\tThey sang: “Gloria”, 3 times.  "
    assert spell(real, text.encode()) == real.tokenize(text)
    assert real.vocabulary.join(real.tokenize(text)) == text.encode()
    assert len(real.tokenize(text)) < len(text) // 2
    assert spell(real, b"") == []


def test_written_control_tokens_are_text_unless_asked_for(smollm2: Model, gemma3: Model) -> None:
    for model, written, token in ((smollm2, "<|im_end|>", 2), (gemma3, "<end_of_turn>", 106)):
        assert model.token_text(token) == written
        assert model.tokenize(written, special=True) == [token]
        assert token not in model.tokenize(written)
        assert model.vocabulary.join(spell(model, written.encode())) == written.encode()


# --- spelled as the cloud does


TEXT = (
    'def mean(values: list[float]) -> float:\n    """Their mean."""\n    return sum(values) / len(values)\n\n'
    "Janet’s ducks lay 16 eggs per day. She sells the remainder for $2.50 each, naïvely: how much does she make?\n"
)


def test_the_device_spells_as_the_cloud_would(smollm2: Model, gemma3: Model) -> None:
    """From the order of its tokens alone: nearly all of Gemma's tokens, and of SmolLM2's those whose words are cut so too."""
    for device, cloud, share in ((smollm2, gemma3, 0.98), (gemma3, smollm2, 0.9)):
        common = common_vocabulary(device.vocabulary, cloud.vocabulary)
        own, theirs = common.cloud_ids[common.spell(TEXT.encode())].tolist(), cloud.tokenize(TEXT)
        places = [_places(cloud, tokens) for tokens in (own, theirs)]
        assert len(places[0] & places[1]) >= share * len(theirs)


def _places(model: Model, tokens: list[int]) -> set[tuple[int, int]]:
    """Where tokens stand in the bytes that they spell."""
    ends = np.cumsum([len(model.vocabulary.pieces[token]) for token in tokens]).tolist()
    return set(zip([0, *ends], ends, strict=False))
