"""Every exception that Antiphon raises on purpose.

    AntiphonError
    +-- UsageError          what the user gave does not fit: a flag, a prompt, a configuration
    |   +-- ModelError      a model name or file that cannot be used, or a model that fails, and why
    |   +-- CacheError      the cache folder cannot be written
    +-- LinkError           the other end cannot be reached, or went away
    +-- ProtocolError       the peer broke the protocol: ours to report, the peer's to mend
    +-- RemoteError         the peer reported an error; `code` is its code
    +-- CapacityError       this end is full: context cells, sessions or sequences

The message of each is one sentence for a person: what is wrong, and what to do.
"""


class AntiphonError(Exception):
    """The root of the tree; `str()` is one sentence for a person."""


class UsageError(AntiphonError):
    """What the user gave does not fit: a flag, a prompt, a configuration."""


class ModelError(UsageError):
    """A model name or file that cannot be used, or a model that fails, and why."""


class CacheError(UsageError):
    """The cache folder cannot be written."""


class LinkError(AntiphonError):
    """The other end cannot be reached, or went away."""


class ProtocolError(AntiphonError):
    """The peer broke the protocol. `code` names the kind of fault on the wire."""

    def __init__(self, message: str, code: str = "bad-frame") -> None:
        super().__init__(message)
        self.code = code


class RemoteError(AntiphonError):
    """The peer reported an error. `code` is the code that it sent."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class CapacityError(AntiphonError):
    """The end at hand is full: context cells, sessions or sequences."""
