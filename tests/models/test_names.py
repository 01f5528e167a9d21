"""What the other end is told of a model."""

from antiphon.models.base import public_name
from antiphon.models.toy import ToyModel


def test_of_a_path_only_the_files_name_is_told() -> None:
    assert public_name(ToyModel([b"a", b""], name="/home/somebody/secret/model.gguf")) == "model.gguf"
    assert public_name(ToyModel([b"a", b""], name="gemma3-270m")) == "gemma3-270m"
