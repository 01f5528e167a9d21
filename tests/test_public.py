"""What people import is a list, and this test holds it; importing it costs nothing."""

import asyncio
import inspect
import pkgutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import antiphon
from antiphon import errors
from support.links import linked, request

PUBLIC = [
    "Answer",
    "AntiphonError",
    "CacheError",
    "CapacityError",
    "Cloud",
    "Device",
    "Finish",
    "Kind",
    "Limits",
    "LinkError",
    "ModelConfig",
    "ModelError",
    "Piece",
    "ProtocolError",
    "RemoteError",
    "Request",
    "Result",
    "SamplingParams",
    "Stream",
    "Timeouts",
    "UsageError",
    "__version__",
    "generate",
]


def test_what_people_import() -> None:
    assert antiphon.__all__ == PUBLIC
    submodules = {module.name for module in pkgutil.iter_modules(antiphon.__path__)}
    ours = {name for name in dir(antiphon) if not name.startswith("_")} - submodules
    assert ours - {"TYPE_CHECKING", "Any", "importlib"} == {name for name in PUBLIC if not name.startswith("_")}


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(antiphon, name)
    assert found.__name__ == name
    assert inspect.getdoc(found)
    methods = inspect.getmembers(found, lambda one: inspect.isfunction(one) or isinstance(one, property))
    assert all(inspect.getdoc(method) for called, method in methods if not called.startswith("_")), methods


def test_the_whole_tree_of_errors() -> None:
    tree = {name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, errors.AntiphonError)}
    assert tree <= set(PUBLIC)


def test_what_there_is_not_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module 'antiphon' has no attribute 'Nonsense'"):
        _ = antiphon.Nonsense
    with pytest.raises(ImportError, match="cannot import name 'Nonsense'"):
        from antiphon import Nonsense  # noqa: F401


def loaded(code: str) -> set[str]:
    """The modules that an interpreter has after it."""
    script = f"import sys\nbefore = set(sys.modules)\n{textwrap.dedent(code)}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_costs_nothing() -> None:
    """Not numpy, nor an event loop; the errors alone cost nothing either."""
    modules = loaded("import antiphon\ndir(antiphon)")
    assert "asyncio" not in modules
    assert {one for one in modules if one.split(".")[0] not in sys.stdlib_module_names} == {"antiphon"}
    modules = loaded("from antiphon import AntiphonError, __version__")
    assert {one for one in modules if one.split(".")[0] not in sys.stdlib_module_names} == {"antiphon", "antiphon.errors"}


@pytest.mark.medium
def test_a_device_needs_no_server_and_a_cloud_no_client() -> None:
    """Nor either of them a model library, or the command line's."""
    device = loaded("from antiphon import *\n") & {"llama_cpp", "typer", "rich", "matplotlib", "sacrebleu", "huggingface_hub"}
    assert not device
    assert not loaded("from antiphon import Device, Request, SamplingParams, generate") & {"uvicorn", "starlette"}
    assert not loaded("from antiphon import Cloud") & {"websockets.asyncio.client", "uvicorn"}


@pytest.mark.medium
def test_the_types_are_seen(tmp_path: Path) -> None:
    """By a strict checker, of each name; and what there is not is not taken for a name."""
    (tmp_path / "good.py").write_text(
        textwrap.dedent("""
        from antiphon import Cloud, Device, Kind, Piece, Request, Result, SamplingParams, generate
        from antiphon.testing import assert_exact

        async def write() -> str:
            text = ""
            async with Device("toy-device", cloud="ws://127.0.0.1:1", library=None) as device:
                result: Result = await device.generate(Request("x", sampling=SamplingParams(temperature=0.0)))
                async for piece in device.stream(Request("x")):
                    kind: Kind = piece.origin
                    tokens: tuple[int, ...] = piece.tokens
                    text += piece.text + kind.value + str(tokens)
            return text + result.text

        def show(pieces: object) -> None: ...

        whole: Result = generate("x", model="toy-device", cloud="ws://127.0.0.1:1", show=show)
        app = Cloud("toy-cloud").app
        """)
    )
    (tmp_path / "bad.py").write_text("from antiphon import Nonsense\n")
    options = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent"]
    root = Path(antiphon.__file__).parents[2]
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), *options]
    done = subprocess.run([*command, "good.py", "bad.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == 'bad.py:1: error: Module "antiphon" has no attribute "Nonsense"  [attr-defined]\n'


def test_generate_waits_for_its_answer() -> None:
    asked = antiphon.Request("the ", "device", sampling=antiphon.SamplingParams(temperature=0.0), max_tokens=6)
    shown: list[antiphon.Piece] = []
    result = antiphon.generate(asked, model="toy-device", show=shown.extend)
    assert result.tokens == 6
    assert "".join(piece.text for piece in shown) == result.text == result.answer.text
    with pytest.raises(antiphon.UsageError, match="the method coupled needs a cloud"):
        antiphon.generate("the ", model="toy-device")

    async def within() -> None:
        antiphon.generate(asked, model="toy-device")

    with pytest.raises(antiphon.UsageError, match=r"generate\(\) waits for its answer, so no event loop can run it"):
        asyncio.run(within())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"draft_lenth": 2}, "the method dssd has no option draft_lenth: it has draft_length, draft_precision, precision"),
        ({"draft_length": "two"}, "draft_length must be a whole number or auto, not 'two'"),
        ({"draft_length": 2.5}, "an option of dssd does not fit: Expected `int`, got `float`"),
        ({"draft_length": 99}, "draft length must be 1 to 16, or 0 \\(auto\\), not 99"),
        (antiphon.Limits(), "the options of dssd are SplitOptions, not Limits"),
    ],
)
def test_options_by_name(options: object, sentence: str) -> None:
    async def test(device: antiphon.Device, connection: object) -> None:
        by_name = antiphon.Request("the ", "dssd", {"draft_length": 3}, antiphon.SamplingParams(temperature=1.0), 24, seed=1)
        named, made = await device.generate(by_name, connection), await device.generate(request(), connection)
        assert named.token_ids == made.token_ids
        with pytest.raises(antiphon.UsageError, match=sentence):
            await device.generate(antiphon.Request("the ", "dssd", options), connection)

    linked(test)
