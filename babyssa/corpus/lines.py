"""Reads files that may be large, compressed, broken or hostile, and locates every error."""

from __future__ import annotations

import gzip
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from babyssa.console import say
from babyssa.errors import DataError

LINE_LIMIT = 1 << 20
"""Longest line, in bytes. No sentence is a megabyte long; a file without line breaks would fill the memory."""

TRANSCRIPT_LIMIT = 64 << 20
"""Largest transcript, in bytes, after decompression. The largest in CHILDES have a few megabytes."""

EXPANSION_LIMIT = 200
"""Largest expansion factor of a gzip file, beyond the first 64 MiB. Speech expands about five times."""

_CHUNK = 1 << 16


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file (gzip if it ends in .gz), including ``\n``, ``\r\n`` or ``\r``.

    Raises
    ------
    DataError
        With file and line, if it is missing, not UTF-8, broken as gzip, expands beyond EXPANSION_LIMIT, or has a
        line over LINE_LIMIT.
    """
    compressed = path.name.lower().endswith(".gz")
    try:
        with (gzip.open if compressed else open)(path, "rb") as stream:
            limit = max(TRANSCRIPT_LIMIT, EXPANSION_LIMIT * path.stat().st_size) if compressed else None
            yield from decoded_lines(stream, path, limit)
    except FileNotFoundError:
        raise DataError("no such file", path=path) from None
    except IsADirectoryError:
        raise DataError("is a folder, not a file", path=path) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"broken gzip file: {error}", path=path) from None


def decoded_lines(stream: BinaryIO, path: Path, limit: int | None = None) -> Iterator[str]:
    """Yield the lines of an open UTF-8 stream, called `path` in errors; see :func:`read_lines`."""
    size = 0
    for number, raw in enumerate(_raw_lines(stream), start=1):
        size += len(raw)
        if len(raw) > LINE_LIMIT:
            raise DataError(
                f"the line is longer than {LINE_LIMIT:,} bytes",
                path=path,
                line=number,
                remedy="put one sentence on each line",
            )
        if limit is not None and size > limit:
            raise DataError(
                f"expands to more than {EXPANSION_LIMIT} times its size: it may be made to fill the memory",
                path=path,
                line=number,
                remedy="unpack it, if you trust it",
            )
        yield decode(raw, path, number)


def filled_lines(lines: Iterable[str], path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the number and content of each non-empty line; report how many lines were empty."""
    empty = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")
        else:
            empty.append(number)
    say_skipped(empty, path)


def say_skipped(empty: list[int], path: str | Path) -> None:
    """Report how many empty lines were skipped, if any; `empty` holds their numbers."""
    if empty:
        lines = "lines" if len(empty) > 1 else "line"
        say(f"{path}: skipped {len(empty):,} empty {lines} (the first is line {empty[0]})")


def sentences_from_stdin() -> list[str]:
    """Read sentences from standard input, one per line; empty lines are skipped.

    Raises
    ------
    DataError
        If there are none, or a line is not UTF-8; names the line.
    """
    source = Path("standard input")
    if sys.stdin is None:
        raise DataError("is closed", path=source, remedy="pass sentences as arguments")
    if sys.stdin.isatty():
        say("reading sentences from standard input, one per line; end with Ctrl-D")
    sentences = [line for _, line in filled_lines(decoded_lines(sys.stdin.buffer, source), source)]
    if not sentences:
        raise DataError("no sentences", path=source, remedy="pass them as arguments, or one per line")
    return sentences


def _raw_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream; a line over LINE_LIMIT is cut off."""
    read = getattr(stream, "read1", stream.read)  # read() would wait for more than the terminal's next line
    pending = b""
    while chunk := read(_CHUNK):
        *lines, pending = (pending + chunk).splitlines(keepends=True)
        # A \r may be the first half of a \r\n.
        if pending.endswith(b"\n"):
            lines.append(pending)
            pending = b""
        yield from lines
        if len(pending) > LINE_LIMIT:
            yield pending
    if pending:
        yield pending


def read_transcript(path: Path) -> str:
    """The text of one transcript file of at most TRANSCRIPT_LIMIT bytes."""
    try:
        with open(path, "rb") as stream:
            return decode(_read_bounded(stream, path), path)
    except FileNotFoundError:
        raise DataError("no such file", path=path) from None


def read_zip_members(path: Path, suffix: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every zip member that ends in `suffix`, sorted by name.

    Members are read in memory and never extracted, so their names cannot reach the file system.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and m.filename.lower().endswith(suffix)]
            for member in sorted(members, key=lambda m: m.filename):
                if Path(member.filename).name.startswith("._"):
                    continue  # a resource fork added by macOS
                inside = Path(f"{path}!{member.filename}")
                with archive.open(member) as stream:
                    yield member.filename, decode(_read_bounded(stream, inside), inside)
    except FileNotFoundError:
        raise DataError("no such file", path=path) from None
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        # RuntimeError is what zipfile raises for an encrypted member.
        raise DataError(f"cannot be read as a zip archive: {error}", path=path) from None


def decode(raw: bytes, path: Path, line: int | None = None) -> str:
    """Decode UTF-8, dropping a byte-order mark; DataError with the line of the first invalid byte."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = len(raw[: error.start + 1].splitlines()) if line is None else line
        raise DataError(
            f"byte 0x{raw[error.start]:02x} is not UTF-8", path=path, line=line, remedy="convert the file to UTF-8"
        ) from None
    return text.removeprefix("\ufeff") if line in (None, 1) else text


def _read_bounded(stream: BinaryIO, path: Path) -> bytes:
    raw = stream.read(TRANSCRIPT_LIMIT + 1)
    if len(raw) > TRANSCRIPT_LIMIT:
        raise DataError(
            f"the transcript is larger than {TRANSCRIPT_LIMIT:,} bytes",
            path=path,
            remedy="split it, or leave it out",
        )
    return raw
