"""The page of attention shows the weights with which the model attends, of every head and text that is chosen."""

import copy

import numpy as np
import pytest

from babyssa import attention_maps
from babyssa.attention import scoring_config, set_scoring
from babyssa.errors import ConfigError, OutputExistsError

TEXTS = ("the dogs on the mat are big .", "look at <b>this</b> .")


def written(pair, scoring, out, **options):
    model = set_scoring(copy.deepcopy(pair[0]), scoring_config(scoring))
    made = attention_maps((model, pair[1]), TEXTS[0], also=TEXTS[1:], out=out, **options)
    return made, [attention_maps((model, pair[1]), text) for text in TEXTS]


@pytest.mark.parametrize("scoring", ["ssa", "sas"])
def test_a_browser_shows_the_weights_of_the_chosen_text_and_head(scoring, masked, opened, tmp_path):
    made, maps = written(masked, scoring, tmp_path / "page.html")
    assert (made.texts, made.heads) == (2, 4)
    window = opened(tmp_path / "page.html")

    def shown():
        cells = window.locator(".map tbody td").all_inner_texts()
        return np.array([float(cell.replace("−", "-")) for cell in cells]) / 100

    assert shown() == pytest.approx(maps[0].weights[0][0].ravel(), abs=0.0051)
    window.select_option(".text", label=TEXTS[1])
    window.get_by_role("button", name="layer 2, head 1").press("Enter")
    window.wait_for_function("document.querySelector('.status').textContent === 'Layer 2, head 1'")
    expected = maps[1].weights[1][0]
    assert shown() == pytest.approx(expected.ravel(), abs=0.0051)
    table = window.get_by_role("table", name="Weights (%) of layer 2, head 1")
    words = table.get_by_role("rowheader").all_inner_texts()
    assert table.get_by_role("columnheader").all_inner_texts()[1:] == words and len(words) == len(expected)
    assert words[0] == "<s>" and not any("Ġ" in word for word in words)
    below = window.locator(".map td.below").count()
    assert below == (expected < -0.00001).sum() and window.locator(".negative").is_visible() == (below > 0)
    assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if scoring == "ssa":
        numbers = window.locator("table.heads:visible tbody tr").first.locator("td").all_inner_texts()
        assert numbers[-2:] == ["1.500", "0.800"]


def test_a_page_needs_a_text_and_further_texts_a_page(masked, tmp_path):
    out = tmp_path / "page.html"
    with pytest.raises(ConfigError, match="needs a text"):
        attention_maps(masked, out=out)
    with pytest.raises(ConfigError, match="further texts need a page"):
        attention_maps(masked, TEXTS[0], also=TEXTS[1:])
    out.write_text("mine")
    with pytest.raises(OutputExistsError):
        attention_maps(masked, TEXTS[0], out=out)
    assert out.read_text() == "mine"


def test_a_page_names_the_command_that_made_it(masked, tmp_path):
    attention_maps(masked, TEXTS[0], also=["look ."], layers=[2], heads=[1], out=tmp_path / "page.html")
    assert "--layers 2 --heads 1" in (tmp_path / "page.html").read_text()
