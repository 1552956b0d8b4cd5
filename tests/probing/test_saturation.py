"""Saturation measured through the modules agrees with the formulas for large leads and factors."""

import copy
import csv
import math

import pytest
import torch

from babyssa.attention import (
    AlphaEntmaxConfig,
    CosFormerConfig,
    MixedConfig,
    Scoring,
    SigmoidConfig,
    SSAConfig,
    TemperatureConfig,
    build_scoring,
    scoring_classes,
    scoring_config,
    set_scoring,
    variants,
)
from babyssa.attention.laws import Law, Setting
from babyssa.errors import ConfigError, ModelError
from babyssa.probing.saturation import draw_saturation, mass_of_others, saturation

CONFIGS = {
    **variants(),
    "n = 3": SSAConfig(n=3.0, b=0.05),
    "n = 1": SSAConfig(n=1.0, b=4.0, learn_n=False),
    "cool": TemperatureConfig(tau=0.2),
    "entmax 1.25": AlphaEntmaxConfig(alpha=1.25),
    "sigmoid of 128": SigmoidConfig(length=128),
    "hot": TemperatureConfig(tau=5.0),
    "far": CosFormerConfig(max_length=20),
    "sparse heads": MixedConfig([["sparsemax", 1], ["entmax", 2]]),
    "three groups": MixedConfig([["softmax", 0.25], [{"name": "ssa", "n": 2.5}, 0.25], ["linear", 0.5]]),
    "fast heads": MixedConfig([["softmax", 0.3], [{"name": "temperature", "tau": 2.0}, 0.7]]),
}


@pytest.fixture(scope="module")
def measured():
    return {(c.scoring, c.condition): c for c in saturation(CONFIGS).curves}


@pytest.mark.parametrize("condition", ["lead", "magnification"])
@pytest.mark.parametrize("label", CONFIGS)
def test_theory_and_measurement_agree_within_two_percent(label, condition, measured):
    curve = measured[label, condition]
    assert abs(curve.deviation_percent) < 2
    assert curve.measured == pytest.approx(curve.law.value, rel=0.02)
    assert curve.deviation_percent == pytest.approx(100 * (curve.measured / curve.law.value - 1))


@pytest.mark.parametrize(
    "label, lead, magnification",
    [
        # 16 logits from -1 to 1: magnified by c, the largest leads the next by 2c/15.
        ("softmax", Law("exponential", -1.0), Law("exponential", -2 / 15)),
        ("sas", Law("exponential", -1.0), Law("exponential", -2 / 15)),
        ("hot", Law("exponential", -0.2), Law("exponential", -2 / 75)),
        ("ssa-2", Law("power", -2.0), None),
        ("n = 3", Law("power", -3.0), None),
        ("linear", Law("power", -1.0), None),
        ("sparsemax", Law("threshold", 1.0), Law("threshold", 7.5)),
        ("entmax", Law("threshold", 2.0), Law("threshold", 15.0)),
        ("ssmax", Law("exponential", -0.43 * math.log(16)), Law("exponential", -0.43 * math.log(16) * 2 / 15)),
        ("off-by-one", Law("exponential", -1.0), Law("exponential", -2 / 15)),
        ("softpick", Law("exponential", -1.0), Law("exponential", -2 / 15)),
        ("sigmoid", None, Law("limit", 7 / 8)),
        ("entmax 1.25", Law("threshold", 4.0), Law("threshold", 30.0)),
        ("mixed", Law("power", -1.5), None),
        ("sparse heads", Law("threshold", 2.0), Law("threshold", 15.0)),
        ("fast heads", Law("exponential", -0.5), Law("exponential", -1 / 15)),
        ("three groups", Law("power", -1.0), None),
    ],
)
def test_the_laws_are_those_of_the_papers(label, lead, magnification, measured):
    for condition, law in (("lead", lead), ("magnification", magnification)):
        found = measured[label, condition].law
        if law is None:
            assert found.kind == "limit" and 0 < found.value < 1
        else:
            assert (found.kind, found.value) == (law.kind, pytest.approx(law.value))


def test_every_scoring_has_a_law():
    assert all(scoring.law is not Scoring.law for scoring in scoring_classes().values())


def test_softmax_saturates_under_magnification_and_ssa_does_not(measured):
    assert measured["softmax", "magnification"].mass[-1] == 0
    kept = measured["ssa-1.5", "magnification"].mass[-1]
    shares = [(j / 15) ** 1.5 for j in range(1, 16, 2)]
    assert kept == pytest.approx(1 - 1 / sum(shares), rel=1e-4)


@pytest.mark.parametrize("others, power", [(0.0, -1.5), (-1.0, -3.0)])
def test_ssa_saturates_under_magnification_where_one_logit_alone_is_above_zero(others, power):
    scoring = build_scoring(SSAConfig(n=1.5, learn_n=False), 1)
    logits = torch.tensor([others] * 15 + [1.0], dtype=torch.float64)
    at = torch.tensor([1e5, 1e6], dtype=torch.float64)
    weights = scoring.weights((at[:, None] * logits).view(1, 1, 2, 16))[0, 0, :, :-1].sum(-1)
    assert weights.log10().diff().item() == pytest.approx(power, rel=1e-3)


@pytest.mark.parametrize("keys", [4, 9])
@pytest.mark.parametrize("condition", ["lead", "magnification"])
@pytest.mark.parametrize("name", scoring_classes())
def test_a_curve_is_the_definition_of_its_scoring(name, condition, keys, definition):
    scoring = build_scoring(variants()[name], 4)
    setting = Setting(condition, keys)
    x = torch.tensor([0.03, 0.5, 2.0, 30.0], dtype=torch.float64)
    found = mass_of_others(scoring, setting, x)
    key = setting.logits(x).view(len(x), 1, keys, 1).expand(-1, 4, -1, -1)
    query = torch.ones(len(x), 4, 1, 1, dtype=torch.float64)
    weights = definition(scoring, query, key, None, scaling=1.0)[:, :, 0]
    expected = (weights[..., :-1].sum(-1) / weights.sum(-1)).mean(1)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("keys", [4, 5, 40, 128])
def test_the_laws_hold_whatever_the_number_of_keys(keys):
    for curve in saturation(keys=keys).curves:
        assert abs(curve.deviation_percent) < 2, (curve.scoring, curve.condition, curve.deviation_percent)


def test_a_law_holds_from_the_last_point_outside_its_tolerance(measured):
    curve = measured["ssa-1.5", "lead"]
    # The formula by hand: weights of 15 logits from -1 to 1, and of 1 + D.
    others = sum((1 + 0.8 * abs(x)) ** math.copysign(1.5, x) for x in (-1 + 2 * j / 14 for j in range(15)) if x)
    others += 1

    def slope(lead):
        def log_mass(d):
            return math.log(others / (others + (1 + 0.8 * (1 + d)) ** 1.5))

        return (log_mass(lead * 1.001) - log_mass(lead)) / math.log(1.001)

    assert slope(curve.holds_from / 1.1) > -1.5 * 0.98 > slope(curve.holds_from * 1.1)
    assert curve.fitted_from > curve.holds_from


def test_scaling_the_query_does_not_saturate_cosformer():
    """It forms no logits: only the key's size counts, as the documentation says."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 2, 6, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    cosformer = build_scoring(variants()["cosformer"], 2)
    once, _ = cosformer(query, key, value, scaling=1.0)
    assert torch.allclose(cosformer(1e6 * query, key, value, scaling=1.0)[0], once, rtol=1e-12)
    linear = build_scoring(variants()["linear"], 2)
    large, _ = linear(1e6 * query, key, value, scaling=1.0)
    assert torch.allclose(linear(1e9 * query, key, value, scaling=1.0)[0], large, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "scorings, keys, says",
    [
        (["sofmax"], 16, "unknown variant 'sofmax'; did you mean 'softmax'"),
        (None, 3, "keys is 3; a whole number from 4 to 10,000"),
        (None, 10_001, "keys is 10001"),
        (None, 4.5, "keys is 4.5"),
        ({"steep": scoring_config("ssmax", s=1e9)}, 16, "scoring 'steep' leaves the others less than"),
        ({"x": 3}, 16, "3 is not the config of a scoring"),
    ],
)
def test_what_cannot_be_measured_is_refused(scorings, keys, says):
    with pytest.raises(ConfigError, match=says):
        saturation(scorings, keys=keys)


@pytest.mark.parametrize("scorings", [None, ["ssa"]])
def test_a_revision_without_a_model_is_refused(scorings):
    with pytest.raises(ConfigError, match="nothing named has a revision 'main'"):
        saturation(scorings, keys=16, revision="main")


@pytest.mark.parametrize("m", [100, 259, 260, 1000, 5500, 1e6])
def test_ssa_on_its_way_to_softmax_has_its_law_to_the_last_digits(m):
    """With b = 1/m and n = m, ever less is left; from m = 5,000 on, no float can hold the limit."""
    lead, magnification = saturation({"limit": SSAConfig(n=m, b=1 / m)}).curves
    assert (lead.law.kind, lead.law.value) == ("power", -m)
    for curve in (lead, magnification):
        assert abs(curve.deviation_percent) < 1e-4 and curve.holds_from < curve.fitted_to
    log_limit = m * math.log(13 / 15)
    if m < 5000:
        assert magnification.law.kind == "limit"
        shares = math.exp(log_limit) + (11 / 15) ** m + (9 / 15) ** m
        assert magnification.measured == pytest.approx(shares / (1 + shares), rel=1e-4)
    else:
        assert magnification.law.kind == "log-limit" and magnification.mass[-1] == 0
        assert magnification.law.value == pytest.approx(log_limit, rel=1e-12)
        assert magnification.measured == pytest.approx(log_limit, rel=1e-9)


@pytest.mark.parametrize("m", [260, 1e4, 1e6])
def test_ssa_on_its_way_to_softmax_has_its_weights(m):
    """t(x) = x - x^2 / (2 m) + ...: the weights differ by at most that, relatively, in float64 and float32."""
    config = SSAConfig(n=m, b=1 / m, learn_n=False, learn_b=False)
    ssa, softmax = (build_scoring(config, 1) for config in (config, variants()["softmax"]))
    x = torch.linspace(-5, 5, 12, dtype=torch.float64).view(1, 1, 1, 12)
    for dtype, precision in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
        found, expected = ssa.weights(x.to(dtype)), softmax.weights(x.to(dtype))
        assert ((found / expected).log().abs() < 25 / m + precision).all()
    curves = saturation({"ssa": ssa.config, "softmax": softmax.config}).curves
    for one, other in zip(curves[:2], curves[2:], strict=True):
        # The curves have the same x as far as Softmax's goes.
        pairs = [(a, b) for x, a, b in zip(one.x, one.mass, other.mass, strict=False) if x <= 20]
        assert len(pairs) > 100 and all(abs(math.log(a / b)) < 250 / m for a, b in pairs)


def test_more_keys_than_cosformer_measures_are_refused():
    with pytest.raises(ModelError, match=r"200 tokens .* here at least 200"):
        saturation(["cosformer"], keys=200)


def test_the_figure_has_a_line_for_each_distinct_curve():
    result = saturation({"$x_{": SSAConfig(n=3.0), "same": SSAConfig(n=3.0), "other": SSAConfig(n=2.0)})
    figure = draw_saturation(result)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"\$x_{, same", "other"]
    for axes, condition in zip(figure.axes, ("lead", "magnification"), strict=True):
        curves = [c for c in result.curves if c.condition == condition and c.scoring != "same"]
        assert [list(line.get_ydata()) for line in axes.lines] == [list(c.mass) for c in curves]
    figure.canvas.draw()


def test_lines_differ_in_colour_or_in_dashes():
    axes = draw_saturation(saturation()).axes[0]
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == len(axes.lines) == 13


def test_the_command_prints_and_writes_what_was_measured(run_babyssa, tmp_path):
    out = tmp_path / "out"
    status, stdout, stderr = run_babyssa("saturation", "--scorings", "ssa-2", "entmax", "--keys", 8, "--out", out)
    assert status == 0 and stderr == f"wrote saturation.csv, curves.csv, saturation.png to {out}\n"
    assert "7 of 8 keys" in stdout and len(stdout.splitlines()) == 7
    result = saturation(["ssa-2", "entmax"], keys=8)
    with open(out / "saturation.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["measured"]) for row in rows] == [curve.measured for curve in result.curves]
    assert [row["law"] for row in rows] == ["power", "limit", "threshold", "threshold"]
    with open(out / "curves.csv", newline="") as file:
        points = [float(row["weight_of_others"]) for row in csv.DictReader(file)]
    assert points == [mass for curve in result.curves for mass in curve.mass]
    assert (out / "saturation.png").read_bytes().startswith(b"\x89PNG")
    status, stdout, stderr = run_babyssa("saturation", "--out", out)
    assert status == 1 and not stdout and "already exists" in stderr
    assert run_babyssa("saturation", "--scorings", "softmax", "--out", out, "--overwrite")[0] == 0


def test_parameters_have_curves_of_their_own(run_babyssa):
    curves = saturation(["softmax", "ssa-2"], scoring={"n": [1.5, 3.0], "b": 0.1}).curves[::2]
    assert [curve.scoring for curve in curves] == ["softmax", "ssa-2, n = 1.5, b = 0.1", "ssa-2, n = 3.0, b = 0.1"]
    assert [curve.law.value for curve in curves] == [-1.0, -1.5, -3.0]
    assert [c.scoring for c in saturation(scoring={"n": 4.0}).curves[::2]] == ["softmax", "ssa, n = 4.0"]
    status, stdout, _ = run_babyssa("saturation", "ssa", "--scoring.n", 1.5, 3, "--scoring.learn-n", "false")
    assert status == 0 and "ssa, n = 3, learn_n = False" in stdout
    for words, says in (
        (["--scoring.m", 2], "no parameter 'm'"),
        (["softmax", "--scoring.n", 2], "no parameters"),
    ):
        status, stdout, stderr = run_babyssa("saturation", *words)
        assert status == 2 and not stdout and says in stderr


def test_the_heads_of_a_model_are_measured_with_what_they_learned(masked, make, tmp_path, run_babyssa):
    model = set_scoring(copy.deepcopy(masked[0]), scoring_config("ssa"))
    first = model.roberta.encoder.layer[0].attention.self.scoring
    with torch.no_grad():
        first.raw_n.add_(torch.tensor([0.5, 2.0]))
    folder = make.save(model, masked[1], tmp_path / "model")
    status, stdout, _ = run_babyssa("saturation", folder, "--out", tmp_path / "out")
    curves = saturation([str(folder)]).curves[::2]
    n = [1.0, *first.n.tolist(), 1.5]
    assert [-curve.law.value for curve in curves] == pytest.approx(n)
    assert [-curve.measured for curve in curves] == pytest.approx(n, rel=1e-3)
    names = ["softmax", f"layer 1 head 1: n {n[1]:.3f}, b 0.800", f"layer 1 head 2: n {n[2]:.3f}, b 0.800"]
    assert [curve.scoring for curve in curves] == [*names, "layer 2: n 1.500, b 0.800"]
    assert status == 0 and all(name in stdout for name in names)
    drawn = draw_saturation(saturation([str(folder)])).legends[0].get_texts()
    assert [text.get_text() for text in drawn] == ["softmax", "heads of layer 1", "heads of layer 2"]


def test_a_stock_model_is_softmax_in_all_heads(masked_folder):
    found = saturation([str(masked_folder), "softmax"]).curves
    assert [curve.scoring for curve in found[::2]] == ["all heads: softmax", "softmax"]
    assert found[0].mass == found[2].mass


def test_the_command_refuses_what_it_does_not_know(run_babyssa, tmp_path):
    for words, says in ((["--scorings", "sofmax"], "did you mean 'softmax'"), (["--keys", 2], "keys is 2")):
        status, stdout, stderr = run_babyssa("saturation", *words, "--out", tmp_path / "out")
        assert status == 2 and not stdout and says in stderr and len(stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
