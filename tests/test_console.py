"""Progress on stderr: bars on a terminal, lines elsewhere, and those of another process among one's own."""

import io
import json
import re
import sys
import time

import pytest

from babyssa import console
from babyssa.console import counting, duration, progress, relaying, say


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A function that makes stderr a terminal of 80 columns; pytest puts its own there before each test."""

    def make() -> Terminal:
        monkeypatch.setattr(console, "_SECONDS_BETWEEN_UPDATES", 0)
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    for name, value in {"COLUMNS": "80", "TERM": "xterm-256color", "COLORTERM": "truecolor"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return make


def work():
    """Two steps of a training within a sweep, and another cell's probing."""
    with counting("sweep", 4, "cells"), relaying("ssa-1.5-0") as relay:
        with counting("training", 2000, "steps", done=500) as advance:
            for _ in range(3):
                advance(250, "loss 3.214")
                relay(console._MARK + json.dumps(["probing", 46_000, "tokens", 900, ""]))
                time.sleep(0.02)
            console._shown.refresh()
        relay("a warning")


def test_elsewhere_a_line_says_how_far_how_fast_and_how_long(monkeypatch, capsys):
    monkeypatch.setattr(console, "_SECONDS_BETWEEN_LINES", 0)
    with counting("training", 2000, "steps", done=500) as advance:
        time.sleep(0.05)
        advance(250, "loss 3.214")
        advance(250)
    lines = capsys.readouterr().err.splitlines()
    rate, left = re.fullmatch(
        r"training: 750/2,000 steps, ([\d,]+)/s, (\d+) s left, loss 3.214", lines[0]
    ).groups()
    assert 0 < float(rate.replace(",", "")) <= 250 / 0.05 and int(left) == round(
        1250 / float(rate.replace(",", ""))
    )
    assert lines[1].startswith("training: 1,000/2,000 steps") and lines[1].endswith("loss 3.214")


def test_what_is_done_at_once_says_nothing(capsys):
    assert list(progress([1, 2, 3], "reading")) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar_for_each_work_within_its_width(terminal):
    seen = terminal()
    work()
    lines = re.split(r"\r|\n", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", seen.getvalue()))
    assert max(map(len, lines)) <= 80
    shown = "\n".join(lines)
    assert re.search(r"sweep +━+ 0/4 cells", shown)
    assert re.search(r"training +[━╸╺]+ 1,250/2,000 steps, [\d,]+/s, \d+ s left, loss 3.214", shown)
    assert re.search(r"ssa-1.5-0: probing +[━╸╺]+ 900/46,000 tokens", shown)
    assert "ssa-1.5-0: a warning" in lines and console._shown is None


def test_colours_are_of_one_hue_and_none_where_they_are_not_wanted(terminal, monkeypatch):
    seen = terminal()
    work()
    colours = re.findall(r"38;2;(\d+);(\d+);(\d+)", seen.getvalue())
    assert colours and all(int(red) <= int(green) <= int(blue) for red, green, blue in colours), "blue to grey"
    monkeypatch.setenv("NO_COLOR", "1")
    seen = terminal()
    work()
    assert "sweep" in seen.getvalue() and "38;" not in seen.getvalue()


def test_a_dumb_terminal_gets_lines(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(console, "_SECONDS_BETWEEN_LINES", 0)
    seen = terminal()
    list(progress(range(2), "reading", unit="files"))
    assert seen.getvalue().startswith("reading: 1/2 files") and "\x1b" not in seen.getvalue()


def test_progress_goes_to_the_process_that_asked_for_it(monkeypatch, capsys):
    monkeypatch.setenv(console.RELAYED, "1")
    monkeypatch.setattr(console, "_SECONDS_BETWEEN_RELAYED", 0)
    with counting("probing", 10, "pairs") as advance:
        advance(4)
        say("a message")
    first, second, _ = capsys.readouterr().err.split("\n")
    assert json.loads(first.removeprefix(console._MARK)) == ["probing", 10, "pairs", 4, ""]
    assert second == "a message"


@pytest.mark.parametrize("seconds, words", [(71, "71 s"), (720, "12 min"), (11_500, "3.2 h")])
def test_a_time_is_in_its_usual_unit(seconds, words):
    assert duration(seconds) == words
