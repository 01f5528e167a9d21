"""llama.cpp behind the interface, on a tiny random model: what is its own beside the contract."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.config import ModelConfig
from antiphon.errors import CapacityError, ModelError, UsageError
from antiphon.models import load
from antiphon.models.base import Context, Model, spell
from antiphon.models.llamacpp import model as llamacpp
from antiphon.models.llamacpp.model import CONTEXTS
from antiphon.models.llamacpp.sequences import BATCH, NARROW, ROWS, chunks
from antiphon.models.toy import named_toy
from antiphon.vocabulary import TokenKind
from support.tinymodel import TOKENS, load_tiny, write_llama, write_mamba

SAME_MODEL = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    model = load_tiny(tmp_path_factory.mktemp("tiny"))
    yield model
    model.close()


@pytest.fixture
def context(tiny: Model) -> Iterator[Context]:
    opened = tiny.open()
    yield opened
    opened.close()


# --- passes


@given(count=st.integers(0, 3 * BATCH), data=st.data())
def test_passes_cover_the_tokens_within_both_bounds(count: int, data: st.DataObject) -> None:
    rows, narrow = data.draw(st.integers(0, count)), data.draw(st.sampled_from([NARROW, ROWS]))
    passes = chunks(range(count), rows, narrow)
    assert [token for chunk, _ in passes for token in chunk] == list(range(count))
    assert sum(wanted for _, wanted in passes) == rows
    assert all(0 < len(chunk) <= BATCH and 0 <= wanted <= min(ROWS, len(chunk)) for chunk, wanted in passes)
    assert count > (narrow if rows else ROWS) or len(passes) <= 1
    assert rows > ROWS or all(len(chunk) <= narrow for chunk, wanted in passes if wanted)
    assert len(passes) < 2 or rows == 0 or len(passes[-1][0]) > 1 or rows == 1 or narrow == 1


@pytest.mark.parametrize(("count", "rows"), [(0, 1), (2, -1), (2, 3)])
def test_more_rows_than_tokens_are_refused_with_nothing_read(context: Context, count: int, rows: int) -> None:
    with pytest.raises(ValueError, match=f"{rows} rows of logits were asked of a pass of {count} tokens"):
        context.extend([1, 260][:count], rows)
    assert context.length == 0


@pytest.mark.parametrize("code", [-3, -1, 2])
def test_a_pass_that_llama_cpp_gives_up_is_taken_back(context: Context, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    context.extend([1])
    wanted = context.extend([260])
    context.rewind(1)
    decode = llamacpp.lib.llama_decode
    monkeypatch.setattr(llamacpp.lib, "llama_decode", lambda *arguments: decode(*arguments) or code)
    with pytest.raises(ModelError, match=f"code {code}"):
        context.extend([261] * 5)
    monkeypatch.undo()
    assert context.length == 1
    np.testing.assert_array_equal(context.extend([260]), wanted)


# --- rollback, forks, lifetime


def test_a_rollback_over_lost_cells_is_an_error_and_never_a_guess(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.extend([260] * 20)
    monkeypatch.setattr(llamacpp.lib, "llama_memory_seq_pos_min", lambda *_: 1)
    with pytest.raises(ModelError, match="lost tokens that it needs again"):
        context.rewind(10)


def test_a_fork_costs_no_cells_for_what_it_shares(tiny: Model) -> None:
    trunk = tiny.open()
    trunk.extend([260] * (tiny.context_length - 40))
    forks = [trunk.fork() for _ in range(20)]
    for fork in forks:
        fork.extend([261, 262])  # 40 cells are left, and all are used
    with pytest.raises(CapacityError, match="full"):
        trunk.extend([261])
    for context in (trunk, *forks):
        context.close()


@pytest.mark.parametrize("cells", [16, 100, 257, 512])
def test_a_small_context_takes_passes_of_any_length(tmp_path: Path, cells: int) -> None:
    model = load_tiny(tmp_path, context=cells)
    for count in (17, ROWS, 300, model.context_length):
        context = model.open()
        assert context.extend([260] * count, min(count, 70)).shape == (min(count, 70), len(TOKENS))
        context.close()
    model.close()


def test_a_full_context_reads_nothing_and_still_works(tmp_path: Path) -> None:
    model = load_tiny(tmp_path)
    context, other = model.open(), model.open()
    context.extend([260] * (model.context_length - 100))
    other.extend([1] * 97)
    for tokens in ([262] * 4, [262] * 90, [262] * 700):  # the second fills the cells only in a later pass
        with pytest.raises(CapacityError, match="full"):
            context.extend(tokens)
        assert context.length == model.context_length - 100
    assert context.extend([262]).shape == (1, len(TOKENS))
    context.rewind(10)
    assert other.extend([262] * 100).shape == (1, len(TOKENS))
    model.close()


def test_a_pass_that_fails_late_takes_its_earlier_part_back(tmp_path: Path) -> None:
    model = load_tiny(tmp_path, context=2048)
    context, other = model.open(), model.open()
    other.extend([1] * 1200)
    wanted = context.extend([1, 260, 261])
    with pytest.raises(CapacityError, match="full"):
        context.extend([262] * 1000)  # its first BATCH tokens fit
    assert context.length == 3
    context.rewind(2)
    np.testing.assert_allclose(context.extend([261]), wanted, atol=1e-4)
    model.close()


def test_sequences_run_out_and_come_back(tiny: Model) -> None:
    opened = [tiny.open() for _ in range(CONTEXTS)]
    with pytest.raises(CapacityError, match="in use"):
        tiny.open()
    with pytest.raises(CapacityError, match="in use"):
        opened[0].fork()
    opened[3].extend([1, 260])
    for context in opened:
        context.close()
        context.close()
    again = [tiny.open() for _ in range(CONTEXTS)]
    assert [context.extend([1]).shape for context in again] == [(1, len(TOKENS))] * CONTEXTS
    for context in again:
        context.close()


def test_closing_gives_the_cells_back(tiny: Model) -> None:
    for _ in range(3):
        context = tiny.open()
        context.extend([260] * (tiny.context_length - 1))
        context.close()


def test_a_closed_context_cannot_reach_its_sequence_next_owner(tiny: Model) -> None:
    closed = tiny.open()
    closed.extend([1, 260])
    closed.close()
    owner = tiny.open()
    owner.extend([1, 261, 262])
    for use in (lambda: closed.extend([1]), lambda: closed.rewind(0), closed.fork):
        with pytest.raises(ValueError, match="closed"):
            use()
    assert owner.extend([263]).shape == (1, len(TOKENS))
    owner.close()


def test_a_closed_model_refuses_instead_of_reading_freed_memory(tmp_path: Path) -> None:
    model = load_tiny(tmp_path)
    context = model.open()
    model.close()
    model.close()
    uses = (model.open, lambda: model.tokenize("a"), lambda: model.token_text(1), lambda: context.extend([1]))
    for use in (*uses, context.fork, lambda: context.rewind(0)):
        with pytest.raises(ValueError, match="closed"):
            use()
    context.close()


# --- the tokenizer


@pytest.mark.parametrize("added_space", [True, False])
def test_plain_text_is_spelled_without_an_added_space(tmp_path: Path, added_space: bool) -> None:
    model = load_tiny(tmp_path, tokenizer__ggml__add_space_prefix=added_space)
    pieces = [model.vocabulary.pieces[token] for token in model.tokenize("hello ab")]
    assert pieces == [b"hel", b"lo", b" ab"]
    model.close()


@given(data=st.binary(max_size=40))
@SAME_MODEL
def test_tiny_spells_any_bytes(tiny: Model, data: bytes) -> None:
    assert tiny.vocabulary.join(spell(tiny, data)) == data


def test_the_canonical_token_of_a_letter_is_the_normal_one(tiny: Model) -> None:
    vocabulary = tiny.vocabulary
    byte_token, normal = 3 + ord("a"), TOKENS.index("a")
    assert vocabulary.pieces[byte_token] == vocabulary.pieces[normal] == b"a"
    assert vocabulary.kinds[byte_token] == TokenKind.BYTE
    assert (vocabulary.canonical[byte_token], vocabulary.canonical[normal]) == (False, True)


def test_of_two_normal_tokens_the_one_that_the_tokenizer_emits_is_canonical(tmp_path: Path) -> None:
    rival, emitted = TOKENS.index("c"), TOKENS.index("▁a")  # a plain space in a token is never what text becomes
    tokens = [" a" if token == "c" else token for token in TOKENS]
    model = load_tiny(tmp_path, tokenizer__ggml__tokens=tokens, tokenizer__ggml__add_space_prefix=False)
    assert rival < emitted
    assert model.vocabulary.pieces[rival] == model.vocabulary.pieces[emitted] == b" a"
    assert model.vocabulary.canonical[[rival, emitted]].tolist() == [False, True]
    model.close()


def test_control_tokens_have_no_bytes_and_are_never_canonical(tiny: Model) -> None:
    vocabulary = tiny.vocabulary
    assert vocabulary.pieces[:3] == (b"", b"", b"")
    assert not vocabulary.canonical[:3].any()
    assert (tiny.begin, vocabulary.end, vocabulary.ends) == ((1,), 2, (2,))
    assert tiny.token_text(2) == "</s>"
    assert tiny.tokenize("</s>", special=True)[-1] == 2
    assert 2 not in tiny.tokenize("</s>")


def test_half_a_surrogate_pair_is_a_usage_error(tiny: Model) -> None:
    with pytest.raises(UsageError, match="surrogate"):
        tiny.tokenize("a\ud800")


def test_a_long_token_is_read_whole(tmp_path: Path) -> None:
    model = load_tiny(tmp_path, tokenizer__ggml__tokens=(*TOKENS[:-1], "long" * 100))
    assert model.vocabulary.pieces[-1] == b"long" * 100
    model.close()


# --- loading


SUITS = {"is_recurrent": False, "is_hybrid": False, "has_encoder": False, "has_decoder": True}


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (
            {"is_recurrent": True},
            "keeps a recurrent state .* rejected drafts could not be taken back: choose a transformer model",
        ),
        ({"is_hybrid": True}, "keeps a recurrent state .*: choose a transformer model"),
        ({"has_encoder": True}, "is no plain decoder, so it cannot continue a text: choose a text-generation model"),
        ({"has_decoder": False}, "is no plain decoder, so it cannot continue a text: choose a text-generation model"),
    ],
)
def test_models_that_do_not_fit_are_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, bool], sentence: str
) -> None:
    for name, answer in (SUITS | answers).items():
        monkeypatch.setattr(llamacpp.lib, f"llama_model_{name}", lambda _, answer=answer: answer)
    with pytest.raises(ModelError, match=f"tiny.gguf {sentence}"):
        load_tiny(tmp_path)


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="carries no tokenizer: get a GGUF file that does"):
        load_tiny(tmp_path, tokenizer__ggml__model="none", llama__vocab_size=len(TOKENS))


def test_a_model_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, answer in (("eos", -1), ("eot", -1), ("is_eog", False)):
        monkeypatch.setattr(llamacpp.lib, f"llama_vocab_{name}", lambda *_, answer=answer: answer)
    with pytest.raises(ModelError, match="no end-of-sequence token"):
        load_tiny(tmp_path)


def test_a_context_that_does_not_fit_into_memory_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llamacpp.lib, "llama_init_from_model", lambda *_: None)
    with pytest.raises(ModelError, match=r"no context of 1024 tokens .* give a smaller --context"):
        load_tiny(tmp_path)


def test_a_recurrent_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="recurrent state"):
        load(ModelConfig(str(write_mamba(tmp_path / "mamba.gguf")), context=256, threads=1))


@pytest.mark.parametrize("changes", [{"llama__pooling_type": 1}, {"llama__attention__causal": False}])
def test_an_embedding_model_is_refused(tmp_path: Path, changes: dict[str, int]) -> None:
    with pytest.raises(ModelError, match="embedding model"):
        load_tiny(tmp_path, **changes)


def test_a_damaged_vocabulary_in_the_cache_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    path = write_llama(tmp_path / "tiny.gguf")
    first = load(ModelConfig(str(path), context=256, threads=1))
    (cached,) = (tmp_path / "cache").iterdir()
    whole = cached.read_bytes()
    another = named_toy("toy-cloud").vocabulary.pack()
    for damage in (b"", b"garbage", whole[:-9], whole[:20] + b"?" + whole[21:], another):
        cached.write_bytes(damage)
        again = load(ModelConfig(str(path), context=256, threads=1))
        assert again.vocabulary.fingerprint == first.vocabulary.fingerprint
        assert cached.read_bytes() == whole
        again.close()
    first.close()


def test_a_path_too_long_for_a_file_name_is_cached_too(tmp_path: Path) -> None:
    folder = tmp_path / ("é" * 100)
    folder.mkdir()
    load_tiny(folder).close()
