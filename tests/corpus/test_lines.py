"""Lines of a file, however they end."""

import io

import pytest

from babyssa.corpus import lines
from babyssa.corpus.lines import decoded_lines, read_lines
from babyssa.errors import DataError


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 16])
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a\nb\n", ["a\n", "b\n"]),
        (b"a\rb\r", ["a\r", "b\r"]),
        (b"a\r\nb", ["a\r\n", "b"]),
        (b"a\r\r\n\n\rb\r\n", ["a\r", "\r\n", "\n", "\r", "b\r\n"]),
        ("a\u2028b\x0bc\n".encode(), ["a\u2028b\x0bc\n"]),
        (b"", []),
    ],
)
def test_lines_end_at_newlines_of_any_system_and_nowhere_else(raw, expected, chunk, monkeypatch):
    monkeypatch.setattr(lines, "_CHUNK", chunk)
    assert list(decoded_lines(io.BytesIO(raw), "here")) == expected


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_error_names_the_line_whatever_ends_it(tmp_path, end):
    (tmp_path / "a.txt").write_bytes(end.join([b"one", b"two", b"caf\xe9"]))
    with pytest.raises(DataError, match="not UTF-8") as caught:
        list(read_lines(tmp_path / "a.txt"))
    assert caught.value.line == 3


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_a_line_over_the_limit_is_refused_with_its_number(tmp_path, monkeypatch, end):
    monkeypatch.setattr(lines, "LINE_LIMIT", 10)
    (tmp_path / "a.txt").write_bytes(end.join([b"0123456789"[:9], b"0123456789a", b"b"]))
    with pytest.raises(DataError, match="longer than 10 bytes") as caught:
        list(read_lines(tmp_path / "a.txt"))
    assert caught.value.line == 2
