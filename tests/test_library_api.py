"""docs/library-api.md and the README's part about it: every block runs as it stands, and every name is there."""

import asyncio
import re
from pathlib import Path

import pytest
import uvicorn

import antiphon
from antiphon import Device, Request
from antiphon.cloud.server import address, listen
from antiphon.config import ServeConfig
from support.libraries import PRIVATE, PUBLIC, make_library

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/library-api.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(blocks(PAGE))))
def test_every_block_runs(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder with two libraries."""
    monkeypatch.chdir(tmp_path)
    make_library(tmp_path / "private.db", PRIVATE)
    make_library(tmp_path / "public.db", PUBLIC)
    block = blocks(PAGE)[number]
    exec(block, {"__name__": "__main__"})
    assert capsys.readouterr().out or "app = " in block


def test_the_block_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    exec(block, {"__name__": "__main__"})
    assert capsys.readouterr().out.endswith("\n")


def test_every_public_name_is_explained() -> None:
    assert [name for name in antiphon.__all__ if f"`{name}" not in PAGE] == []


def test_the_mounted_application_is_where_the_page_says() -> None:
    names: dict = {}
    (block,) = [block for block in blocks(PAGE) if "Mount" in block]
    exec(block, names)

    async def run() -> int:
        server = uvicorn.Server(uvicorn.Config(names["app"], log_config=None, log_level="critical"))
        with listen(ServeConfig(port=0)) as listener:
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                async with Device("toy-device", cloud=f"{address(listener)}/antiphon/") as device:
                    return (await device.generate(Request("the ", max_tokens=5))).tokens
            finally:
                server.should_exit = True
                await serving

    assert asyncio.run(asyncio.wait_for(run(), 60)) > 0


def test_what_is_in_the_table_of_errors_is_the_tree() -> None:
    rows = dict(re.findall(r"^\| `(\w+Error)` \| (.*) \|$", PAGE, re.MULTILINE))
    tree = {name for name in antiphon.__all__ if name.endswith("Error")} - {"AntiphonError"}
    assert rows.keys() == tree
    for name, meaning in rows.items():
        assert ("a `UsageError`" in meaning) == (
            name != "UsageError" and issubclass(getattr(antiphon, name), antiphon.UsageError)
        )
