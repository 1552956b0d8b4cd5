"""The results page: its numbers are the comparison's, its pairs the results', and it works in a browser."""

import base64
import gzip
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from babyssa import compare, probe, report
from babyssa.comparison.cells import Measured, quantize, write_cell
from babyssa.comparison.results import read_result
from babyssa.errors import DataError, OutputExistsError
from babyssa.pages.report import pack_margins
from babyssa.probing import MinimalPair, Paradigm, Suite
from babyssa.probing.tokens import read_tokens

HOSTILE = "</script><img src=x onerror=alert(1)>"
SUITE = Suite(
    "small & mean",
    (
        Paradigm(
            "agreement-number",
            "agreement",
            tuple(
                MinimalPair(f"the {noun} on the mat is {adjective} .", f"the {noun}s on the mat is {adjective} .")
                for noun in ("dog", "horse", "cookie")
                for adjective in ("big", "purple", "smart")
            ),
        ),
        Paradigm("binding", "binding", (MinimalPair("look at this .", "look at those ."), MinimalPair("a", "a"))),
        Paradigm(HOSTILE, "hostile", (MinimalPair(HOSTILE, f"the {HOSTILE}"),)),
    ),
)


class Page(HTMLParser):
    """The elements of a page with an id, and the rows of its tables."""

    def __init__(self, path):
        super().__init__()
        self.parts, self.rows, self.tags, self._open, self._table = {}, {}, [], None, None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "script":
            self._open = attributes.get("id")
        if tag == "table":
            self._table = self.rows.setdefault(attributes.get("class", "").split(" ")[-1], [])
        if tag == "tr" and self._table is not None:
            self._table.append([])
        if tag in ("td", "th") and self._table:
            self._table[-1].append("")

    def handle_endtag(self, tag):
        if tag == "script":
            self._open = None
        if tag == "table":
            self._table = None

    def handle_data(self, data):
        if self._open:
            self.parts[self._open] = self.parts.get(self._open, "") + data
        elif self._table and self._table[-1]:
            self._table[-1][-1] += data.strip() + " "

    @property
    def facts(self):
        return json.loads(self.parts["facts"])["p0"]

    def unpack(self, name):
        return gzip.decompress(base64.b64decode(self.parts[name]))


@pytest.fixture(scope="module")
def results(make, tmp_path_factory):
    """Two variants x two seeds, probed."""
    folder = tmp_path_factory.mktemp("results")
    tokenizer = make.tokenizer()
    for number, (variant, seed) in enumerate((v, s) for v in ("softmax", "ssa") for s in (0, 1)):
        model = make.masked(tokenizer, seed=number)
        probe((model, tokenizer), SUITE, variant=variant, seed=seed, out=folder / f"{variant}-{seed}")
    return folder


@pytest.fixture(scope="module")
def path(results, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    made = report([results], out=out)
    assert (made.pairs, made.models) == (12, 4)
    return out


def test_the_tables_hold_the_numbers_of_the_comparison(results, path):
    page, table = Page(path), compare([results]).table
    for name in ("agreement-number", "binding", "mean over paradigms"):
        rows = table[(table.name == name) & (table.level != "phenomenon")].set_index("variant")
        accuracies = next(row for row in page.rows["estimates"] if row[0].strip() == name)
        for cell, variant in zip(accuracies[3:], ("softmax", "ssa"), strict=True):
            assert cell.startswith(f"{100 * rows.accuracy[variant]:.1f} ±")
        difference = next(row for row in page.rows["contrasts"] if row[0].strip() == name)[1]
        shown = float(re.match(r"[+−]?[\d.]+", difference)[0].replace("−", "-"))
        assert shown == pytest.approx(100 * rows.difference["ssa"], abs=0.0501)


def test_every_pair_is_in_the_page_with_the_margin_of_every_model(results, path):
    page, found = Page(path), compare([results]).results
    seen = 0
    for number, paradigm in enumerate(page.facts["paradigms"]):
        sentences = page.unpack(f"sentences-p0-{number}").decode().split("\n")
        margins = np.frombuffer(page.unpack(f"margins-p0-{number}"), "<i2").reshape(len(found), -1) / 100
        for model, result in enumerate(found):
            assert page.facts["models"][model] == {"variant": result.variant, "seed": str(result.seed)}
            for pair, margin in enumerate(margins[model]):
                key = (paradigm["name"], *sentences[2 * pair : 2 * pair + 2], 0)
                assert margin == pytest.approx(result.margins[key], abs=0.0101)
                assert np.sign(margin) == np.sign(result.margins[key])
                seen += 1
    assert seen == 12 * 4


def test_a_margin_keeps_its_sign_however_small_or_large_it_is():
    exact = np.array([[0.0, 1e-9, -1e-9, 0.126, -1e6, 1e6]])
    packed = np.frombuffer(pack_margins(exact), "<i2").tolist()
    assert packed == [0, 1, -1, 13, -32767, 32767]


def test_names_and_sentences_cannot_become_elements_of_the_page(path):
    assert all("onerror" not in attributes for _, attributes in Page(path).tags)
    assert HOSTILE in [paradigm["name"] for paradigm in Page(path).facts["paradigms"]]


def test_the_page_asks_nothing_of_a_network(path):
    links = [a.get(key) for _, a in Page(path).tags for key in ("src", "href") if a.get(key)]
    assert all(link.startswith(("#", "data:")) for link in links)


def test_the_same_results_give_the_same_page(results, path, tmp_path):
    report([results], out=tmp_path / "again.html")
    again = (tmp_path / "again.html").read_text(encoding="utf-8").replace(str(tmp_path / "again.html"), str(path))
    assert again == path.read_text(encoding="utf-8")


def test_the_page_says_how_to_make_it_again(results, tmp_path):
    out = tmp_path / "page.html"
    report([results], out=out, level=0.9, baseline="ssa")
    command = f"babyssa report {results} --out {out} --baseline=ssa --level=0.9"
    assert f"<code>{command}</code>" in out.read_text(encoding="utf-8")


def test_one_model_alone_has_no_differences(results, tmp_path):
    report([results / "ssa-0"], out=tmp_path / "one.html")
    page = Page(tmp_path / "one.html")
    assert "contrasts" not in page.rows
    assert set(page.facts["charts"]) == {"accuracy"}
    assert "error_x" not in page.facts["charts"]["accuracy"]["data"][0]


def test_the_page_of_one_model_speaks_of_it_alone(results, tmp_path):
    report([results / "ssa-0"], out=tmp_path / "one.html")
    written = (tmp_path / "one.html").read_text(encoding="utf-8")
    accuracy = 100 * read_result(results / "ssa-0").summary["accuracy"]
    assert f"ssa decides {accuracy:.1f}% of the pairs right" in written
    assert "seeds" not in written.split("<main")[1].split("Pairs</h3>")[1].split("<noscript>")[0]
    assert "in every seed" not in written and "nothing to compare" not in written


def test_every_token_is_in_the_page_with_its_mean_over_the_seeds(results, path):
    page = Page(path)
    number = [p["name"] for p in page.facts["paradigms"]].index("agreement-number")
    spans = np.frombuffer(page.unpack(f"spans-p0-{number}-0"), "<u4")
    counts, starts, lengths = spans[:18], spans[18:36], spans[36:]
    assert page.facts["spans"] == [0, 0] and counts.sum() == len(lengths)
    texts = page.unpack(f"sentences-p0-{number}").decode().split("\n")
    by_text = np.split(lengths, counts.cumsum()[:-1])
    assert [start + own.sum() for start, own in zip(starts, by_text, strict=True)] == list(map(len, texts))
    for variant, name in enumerate(page.facts["variants"]):
        tenths = np.frombuffer(page.unpack(f"tokens-p0-{number}-{variant}"), np.uint8)
        stored = [read_tokens(results / f"{name}-{seed}" / "tokens.npz").scores[: counts.sum()] for seed in (0, 1)]
        assert tenths / -10 == pytest.approx(np.clip(np.mean(stored, axis=0), -25.5, 0), abs=0.0501)


@pytest.fixture(scope="module")
def checkpoints(results, tmp_path_factory):
    """Results of one run of each variant after 10 and after 20 steps."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for variant in ("softmax", "ssa"):
        for number, step in enumerate((10, 20)):
            copied = shutil.copytree(results / f"{variant}-{number}", folder / variant / f"step-{step}")
            summary = json.loads((copied / "summary.json").read_text()) | {"seed": 0, "step": step}
            (copied / "summary.json").write_text(json.dumps(summary))
            (copied / "checksums.json").unlink()
    return folder


def test_results_of_checkpoints_become_learning_curves_and_a_comparison_of_their_ends(checkpoints, tmp_path):
    report([checkpoints], out=tmp_path / "curves.html")
    page, table = Page(tmp_path / "curves.html"), compare([checkpoints], over="steps").points
    facts = json.loads(page.parts["facts"])
    for number, name in enumerate(dict.fromkeys(table.paradigm)):
        for line in facts["p0"]["charts"][str(number)]["data"]:
            expected = table[(table.paradigm == name) & (table.variant == line["name"])]
            assert line["x"] == [10, 20] and line["y"] == pytest.approx(100 * expected.accuracy, abs=1e-3)
    assert page.rows["points"][1][:2] == ["mean over paradigms ", "10 "]
    last = compare([checkpoints / "softmax" / "step-20", checkpoints / "ssa" / "step-20"]).table
    found = {row[0].strip(): row[3].split()[0] for row in page.rows["estimates"][1:]}
    expected = last[last.variant == "softmax"].set_index("name").accuracy
    assert all(float(shown) == pytest.approx(100 * expected[name], abs=0.0501) for name, shown in found.items())


def test_a_page_is_not_replaced_unless_asked(results, path, run_babyssa):
    before = path.read_bytes()
    with pytest.raises(OutputExistsError):
        report([results], out=path)
    assert path.read_bytes() == before
    with pytest.raises(DataError, match="no such folder"):
        report([results / "nowhere"], out=path, overwrite=True)
    assert path.read_bytes() == before
    status, out, _ = run_babyssa("report", results, "--out", path, "--overwrite")
    assert status == 0
    assert "12 pairs as 4 models decided them" in " ".join(out.split())


@pytest.fixture
def experiment(results, tmp_path):
    """The small files of two variants x two seeds, which have no sentences."""
    for result in compare([results]).results:
        margins = np.array(list(result.margins.values()))
        folder = tmp_path / "results" / f"{result.variant}-{result.seed}"
        measured = {
            "pairs": Measured(
                {"accuracy": result.summary["accuracy"]}, "accuracy", result.summary, None, quantize(margins)
            ),
            "held-out": Measured({"perplexity": 20.0 + result.seed - (result.variant == "ssa")}, "perplexity"),
        }
        values = {key: result.summary[key] for key in ("variant", "seed")} | {"settings": {}, "facts": {}}
        values |= {"experiment": "grammar", "condition": "", "baseline": "softmax"}
        write_cell(
            folder, values | {"measures": {name: {"kind": name, "options": {}} for name in measured}}, measured
        )
    return tmp_path / "results"


def test_an_experiment_has_a_section_for_each_measure_and_the_sentences_of_its_suite(experiment, tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    for name in ("agreement-number", "binding"):
        pairs = next(p.pairs for p in SUITE.paradigms if p.name == name)
        (folder / f"{name}.txt").write_text("".join(f"{p.bad}\n{p.good}\n" for p in pairs), encoding="utf-8")
    report([experiment], out=tmp_path / "page.html", suite=str(folder), suite_order="bad-first")
    page = Page(tmp_path / "page.html")
    assert list(json.loads(page.parts["facts"])) == ["p0", "p1"]
    assert page.rows["scalars"][1][0].strip() == "perplexity"
    assert page.rows["scalars"][1][1].startswith("20.5 ±")
    assert page.rows["scalars"][1][3].startswith("−1 [")
    names = [paradigm["name"] for paradigm in page.facts["paradigms"]]
    sentences = page.unpack(f"sentences-p0-{names.index('binding')}").decode().split("\n")
    assert sentences == ["look at this .", "look at those .", "a", "a"]
    unknown = page.unpack(f"sentences-p0-{names.index(HOSTILE)}").decode().split("\n")
    assert unknown == ["grammatical sentence of pair 1", "ungrammatical sentence"]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Tokens are not shaded: the small files of an experiment hold margins only." in text


@pytest.fixture
def window(opened, path):
    """The page, loaded, at the width of a phone."""
    return opened(path)


def test_a_browser_searches_sorts_and_filters_pairs(window):
    def rows():
        return window.locator("table.browser tbody tr").count()

    window.select_option(".paradigm", label="agreement-number (9)")
    window.wait_for_function("document.querySelector('.status').textContent === '9 of 9 pairs'")
    assert rows() == 9
    window.fill(".dt-search input >> nth=-1", "cookie")
    assert rows() == 3
    window.fill(".dt-search input >> nth=-1", "")
    window.get_by_role("button", name=re.compile("^ssa: ")).last.press("Enter")
    texts = window.locator("table.browser tbody td.number:last-child small").all_inner_texts()
    margins = [float(text.replace("−", "-")) for text in texts]
    assert margins == sorted(margins)
    middle = margins[4]
    window.fill(".low", str(middle))
    assert rows() == sum(margin >= middle - 0.005 for margin in margins)
    window.fill(".low", "")
    decided = {}
    for choice in ("right", "wrong", "split"):
        window.select_option(".decided", choice)
        decided[choice] = int(window.locator(".status").inner_text().split()[0])
    assert sum(decided.values()) == 9
    window.select_option(".decided", "")
    window.select_option(".paradigm", "all")
    window.wait_for_function("document.querySelector('.status').textContent === '12 of 12 pairs'")


def test_a_browser_shows_what_each_model_decided(window, results):
    window.select_option(".paradigm", label="binding (2)")
    window.wait_for_function("document.querySelector('.status').textContent === '2 of 2 pairs'")
    window.locator("button.open").first.press("Enter")
    table = window.get_by_role("table", name="What each model decided")
    shown = [float(text.replace("−", "-")) for text in table.locator("td:last-child").all_inner_texts()]
    key = ("binding", "look at this .", "look at those .", 0)
    expected = [result.margins[key] for result in compare([results]).results]
    assert shown == pytest.approx(expected, abs=0.0101)
    assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")


# The contrast, as WCAG defines it, of the text of the most strongly shaded token of the scale.
CONTRAST = """() => {
  const token = [...document.querySelectorAll(".scale .token")].at(-1);
  const pixel = (...colours) => {
    const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((c) => (c / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const { color, backgroundColor } = getComputedStyle(token);
  const paper = getComputedStyle(document.body).backgroundColor;
  const [text, back, plain] = [pixel(color), pixel(paper, backgroundColor), pixel(paper)];
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  return { contrast: ratio(text, back), shade: ratio(plain, back) };
}"""


def test_a_browser_shades_tokens_and_reads_out_their_numbers(window, results):
    window.select_option(".paradigm", label="agreement-number (9)")
    window.select_option(".variant", label="ssa")
    window.wait_for_function("document.querySelector('.scale .of').textContent.includes('ssa')")
    good = window.locator("table.browser tbody tr").first.locator(".good")
    tokens = good.locator(".token")
    stored = [read_tokens(results / f"ssa-{seed}" / "tokens.npz").of(np.array([0])).scores for seed in (0, 1)]
    expected = np.mean(stored, axis=0)
    titles = [float(t.replace("−", "-")) for t in tokens.evaluate_all("tokens => tokens.map((t) => t.title)")]
    assert titles == pytest.approx(expected, abs=0.0501)
    shades = tokens.evaluate_all("tokens => tokens.map((t) => parseFloat(t.style.getPropertyValue('--shade')))")
    assert shades == pytest.approx(np.clip(-6 * expected, 0, 60), abs=0.81)
    assert good.inner_text() == "✓ the dog on the mat is big ."
    window.locator("button.open").first.press("Enter")
    table = window.get_by_role("table", name="✓ Grammatical sentence: log-probability of each token (nats)")
    table.wait_for()
    heads = table.get_by_role("columnheader").all_inner_texts()
    assert "".join(heads[1:-1]) == "thedogonthematisbig." and heads[-1] == "sum"
    cells = table.get_by_role("row", name=re.compile("^ssa")).get_by_role("cell").all_inner_texts()
    shown = [float(text.replace("−", "-")) for text in cells]
    assert shown[:-1] == titles and shown[-1] == pytest.approx(expected.sum(), abs=0.5)
    for scheme in ("light", "dark"):
        window.emulate_media(color_scheme=scheme)
        seen = window.evaluate(CONTRAST)
        assert seen["contrast"] > 4.5 and seen["shade"] > 1.3, (scheme, seen)
    assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_browser_draws_the_charts(window):
    for chart in ("accuracy", "differences"):
        window.locator(f"#p0-{chart}").scroll_into_view_if_needed()
        window.wait_for_selector(f"#p0-{chart}[data-drawn=true] svg")
