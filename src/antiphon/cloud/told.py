"""What a cloud tells of itself where it refuses or fails: what a device can act on, and nothing of the machine behind it."""

import re

from antiphon.models.base import Model, public_name

_DATABASE = re.compile(r"postgres(?:ql)?://[^\s'\"]+")
_PATH = re.compile(r"(?<![\w:/.~])(?:~?/|[A-Za-z]:\\)((?:[^/\\\n'\":;,()]+[/\\])+)(?=([^/\\\s]?))")
"""A path that begins at a root or at home: its folders, and what follows them.

It is found whatever follows: one that could fail there would be looked for again from each of its folders.
"""


def told(error: BaseException, model: Model) -> str:
    """The sentence of an error as it crosses: of a model or a file the name without its folders, of a database nothing."""
    # First the model's name, which the patterns below might find in part.
    sentence = str(error).replace(model.name, public_name(model))
    return _PATH.sub(_name, _DATABASE.sub("the library", sentence))[:4096]


def _name(path: "re.Match[str]") -> str:
    """What is left of a path's folders: nothing before a name; where none follows, the last of them is the name."""
    folders, follows = path.groups()
    return "" if follows else re.split(r"(?<=[/\\])", folders)[-2]
