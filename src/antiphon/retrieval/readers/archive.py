"""Archives of XML, as DOCX, ODT, PPTX and EPUB are, with limits: a few kilobytes may unpack to gigabytes.

The XML is read as a stream of events by Expat. A document type, which could define entities, is refused, and so is XML that is
nested too deeply.
"""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.parsers import expat

from antiphon.retrieval.documents import DocumentError, first_line
from antiphon.retrieval.readers.decoding import require_size

MAX_UNPACKED = 512 * 2**20
"""Bytes of all parts that are read of one archive."""
MAX_RATIO = 200
"""A part that unpacks to so many times its size is no document; real XML stays below 50."""
_SMALL = 8 * 2**20
_MAX_DEPTH = 1000
_CHUNK = 2**16
_ENCRYPTED = 1
"""Among the flags of a part."""
_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, LookupError)


class Archive:
    """The parts of an archive. Within `opened` alone."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive, self._left = archive, MAX_UNPACKED
        self.names = set(archive.namelist())

    def read(self, name: str) -> bytes:
        """The bytes of a part; none if there is no such part."""
        return b"".join(self._chunks(name))

    def events(self, name: str, start: Callable[[str, dict[str, str]], None], end: Callable[[str], None],
               text: Callable[[str], None]) -> None:  # fmt: skip
        """Tell what is in a part of XML: elements by their names without prefixes, and their text. Nothing if it is missing."""
        parser, depth = expat.ParserCreate(), 0

        def opened(tag: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > _MAX_DEPTH:
                raise DocumentError(f"its XML is nested more than {_MAX_DEPTH} deep")
            start(_local(tag), {_local(key): value for key, value in attributes.items()})

        def closed(tag: str) -> None:
            nonlocal depth
            depth -= 1
            end(_local(tag))

        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = opened, closed, text
        # Entities are defined in a document type; without one there are none to expand ("billion laughs"), nor files to
        # include.
        parser.StartDoctypeDeclHandler = _refuse
        parser.buffer_text = True
        for chunk in self._chunks(name):
            parser.Parse(chunk, False)
        if name in self.names:
            parser.Parse(b"", True)

    def _chunks(self, name: str) -> Iterator[bytes]:
        if name not in self.names:
            return
        entry = self._archive.getinfo(name)
        if entry.flag_bits & _ENCRYPTED:
            raise DocumentError("it is encrypted with a password: save it without one")
        # By what really comes out, and not by the unpacked size that the archive claims: whoever made it wrote that.
        most = max(_SMALL, MAX_RATIO * entry.compress_size)
        with self._archive.open(entry) as part:
            while chunk := part.read(_CHUNK):
                self._left -= len(chunk)
                most -= len(chunk)
                if self._left < 0 or most < 0:
                    raise DocumentError(f"it unpacks to much more than it should (its part {name[:60]}): no document does")
                yield chunk


@contextmanager
def opened(path: Path, kind: str) -> Iterator[Archive]:
    """The archive of a file. kind: what it should be. Raises DocumentError where it, or its XML, is broken."""
    require_size(path)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            yield Archive(archive)
    except expat.ExpatError as error:
        raise DocumentError(f"it is no sound {kind} ({first_line(error)})") from error
    except DocumentError:
        raise
    except _BROKEN as error:
        raise DocumentError(f"it is no sound {kind}, or it is encrypted ({first_line(error)})") from error


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse(*_: object) -> None:
    raise DocumentError("its XML has a document type, which may define entities without end: save it anew without one")
