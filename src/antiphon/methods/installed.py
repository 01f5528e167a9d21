"""Methods that other distributions bring, by entry points of the group `antiphon.methods`: the name is the method's own.

    [project.entry-points."antiphon.methods"]
    point = "my_package.point:POINT"

They are looked for where a name is asked for that Antiphon itself does not have, and where a cloud is made, which offers all;
never when something is imported.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from antiphon.errors import UsageError
from antiphon.methods.base import Method

GROUP = "antiphon.methods"


def installed(own: Mapping[str, Method]) -> Mapping[str, Method]:
    """The methods of other distributions, by name; `own` are those whose names are taken.

    Raises UsageError for one that cannot be loaded, is no method, or has a name that there is already.
    """
    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        if entry.name in own:
            raise UsageError(f"{_whose(entry)} is named as one of Antiphon's own: uninstall it, or ask for another name")
        if entry.name in entries:
            both = f"{_package(entries[entry.name])} and {_package(entry)}"
            raise UsageError(f"the packages {both} both bring a method {entry.name!r}: uninstall one of them")
        entries[entry.name] = entry
    return {name: _loaded(entry) for name, entry in entries.items()}


def _loaded(entry: EntryPoint) -> Method:
    try:
        method = entry.load()
    except Exception as error:  # code of others, which may fail in any way
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"{_whose(entry)} cannot be loaded ({why}): update it, or uninstall it") from error
    if not isinstance(method, Method):
        raise UsageError(f"{_whose(entry)} is of type {type(method).__name__} and no `Method`: update it, or uninstall it")
    if method.name != entry.name:
        raise UsageError(f"{_whose(entry)} calls itself {method.name!r}: both names must be the same")
    return method


def _whose(entry: EntryPoint) -> str:
    return f"the method {entry.name!r} of the package {_package(entry)}"


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
