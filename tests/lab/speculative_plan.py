"""A small plan of `bench speculative` on toys."""

import json
from pathlib import Path

from antiphon.config import ModelConfig
from antiphon_lab.experiments.speculative.grid import Plan
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link

PROMPTS = ("the ", "then an", "he in the ring", "red ")


def plan(folder: Path, **changes: object) -> Plan:
    data = folder / "prompts.jsonl"
    data.write_text("\n".join(json.dumps({"prompt": prompt}) for prompt in PROMPTS))
    fields: dict = {
        "data": (data,),
        "methods": ("dssd", "coupled", "coupled-tree"),
        "links": (parse_link("x-cosd@100"), parse_link("4g")),
        "computes": (parse_compute("a100-7b"),),
        "lengths": (2, 0),
        "expansions": ("2,2",),
        "patiences": ("lockstep",),
        "temperatures": (1.0,),
        "prompts": 3,
        "tokens": 16,
        "seeds": 4,
        "cloud_model": ModelConfig("toy-cloud"),
        "device_model": ModelConfig("toy-device"),
    }
    return Plan(**{**fields, **changes})
