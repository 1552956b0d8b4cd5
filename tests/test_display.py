"""Results show themselves within any width, with nothing cut, and as Markdown, HTML and frames."""

import io
import math

import pytest
from rich.console import Console

from babyssa.display import Column, Shown, Table, escape_markdown, percent, readable_token, show

NAMES = ("agreement_subject_verb-across_prepositional_phrase", "npi_licensing-only_npi_licensor", "x")


class Result(Shown):
    """Three paradigms and as many variants as asked for."""

    def __init__(self, variants: int = 1):
        self.variants = variants

    def tables(self):
        columns = [Column("paradigm"), Column("pairs", ",")]
        columns += [Column(f"accuracy_{n}", percent, f"accuracy {n} %") for n in range(self.variants)]
        rows = [(name, 1000, *[0.5] * self.variants) for name in NAMES]
        yield Table(columns, rows, "tiny", ("A tie counts one half.",), ("mean", 3000, *[0.5] * self.variants))


def printed(result, width: int, **options) -> str:
    console = Console(file=io.StringIO(), width=width, **options)
    console.print(result)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("variants", [0, 1, 30])
def test_a_table_fits_any_width_and_nothing_is_cut(width, variants):
    lines = printed(Result(variants), width).splitlines()
    assert max(map(len, lines)) <= width
    text = "".join("".join(line.split()) for line in lines)
    assert "…" not in text
    assert text.count("50.0") == 4 * variants
    # Names that wrap are read down their own column.
    column = "".join(line.split("  ")[0].strip() for line in lines)
    assert width < 40 or all(name in column for name in NAMES)


def test_numbers_are_aligned_to_the_right_and_the_total_is_under_a_rule():
    lines = printed(Result(), 100).splitlines()
    rows = [line.rstrip() for line in lines if "50.0" in line]
    assert {row.index("50.0") for row in rows} == {rows[0].index("50.0")}
    assert all(row.endswith("50.0") for row in rows)
    assert lines[-3].startswith("---") and lines[-2].startswith("mean") and lines[-1].startswith("A tie")


def test_the_first_column_is_repeated_where_a_table_is_split():
    text = printed(Result(30), 80)
    assert text.count("paradigm") == text.count("mean") > 1


def test_without_a_terminal_nothing_is_coloured(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    show(Result())
    text = capsys.readouterr().out
    assert "\x1b" not in text and all(line == line.rstrip() for line in text.splitlines())
    assert text == str(Result()) + "\n"


def test_no_color_leaves_no_colour_in_a_terminal(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(Result(), 80, force_terminal=True)


def test_the_frame_keeps_values_and_leaves_out_the_total():
    frame = Result(2).to_frame()
    assert list(frame) == ["paradigm", "pairs", "accuracy_0", "accuracy_1"]
    assert frame.pairs.tolist() == [1000] * 3 and frame.accuracy_0.tolist() == [0.5] * 3


def test_markdown_and_html_have_every_cell():
    assert "| npi_licensing-only_npi_licensor | 1,000 | 50.0 |" in Result().to_markdown()
    html = Result()._repr_html_()
    assert html.count("<tr>") == 5 and '<td style="text-align: right">50.0</td>' in html


def test_what_is_unknown_shows_as_nothing_and_hidden_columns_are_in_the_frame_only():
    table = Table([Column("a", ".2f"), Column("b", hidden=True)], [(None, 1), (math.nan, 2), (0.5, 3)])
    (cells,) = table.cells()
    assert cells.texts == ("", "", "0.50") and cells.right
    assert table.to_frame().b.tolist() == [1, 2, 3]


def test_foreign_text_cannot_steer_a_terminal_or_a_page():
    table = Table([Column("a")], [("x\x1b[31m<b>|*y*",)], title="t\n\x1b[2J")
    assert "\x1b" not in printed(table, 80)
    assert "&lt;b&gt;" in table.to_html()
    assert r"&lt;b&gt;\|\*y\*" in table.to_markdown()
    assert escape_markdown("a_b _c_ http://x") == r"a_b \_c\_ http&#58;//x"
    assert escape_markdown("[1, 2] [a](b) [c][d]") == r"[1, 2] [a\](b) [c\][d]"


@pytest.mark.parametrize(
    ("token", "text"),
    [("Ġthe", "▁the"), ("▁the", "▁the"), ("##ing", "##ing"), ("Ã©", "é"), ("<mask>", "<mask>"), ("ĠÃ", "▁Ã")],
)
def test_tokens_read_as_words(token, text):
    assert readable_token(token) == text
