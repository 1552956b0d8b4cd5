"""Scorings by name: defaults, parameters out of domain, plain values and back."""

import dataclasses
import json
import math
from pathlib import Path

import pytest

from babyssa.attention import (
    MixedConfig,
    SoftmaxConfig,
    SSAConfig,
    TemperatureConfig,
    build_scoring,
    fit_scoring,
    scoring_classes,
    scoring_config,
    scoring_settings,
    scoring_to_dict,
    variant_name,
    variants,
)
from babyssa.attention.registry import scoring_from_dict
from babyssa.errors import ConfigError

MIXTURES = [
    MixedConfig([["linear", 1], ["cosformer", 3]]),
    MixedConfig([[{"name": "ssa-2", "b": 0.3}, 0.25], [SoftmaxConfig(), 0.5], ["entmax", 0.25]]),
    MixedConfig([["sas", 2], [scoring_config("mixed"), 2]]),
]


def test_every_scoring_is_a_variant_with_its_defaults():
    assert all(variants()[name] == scoring.Config() for name, scoring in scoring_classes().items())


def test_the_documentation_describes_each_scoring_as_its_class_does():
    text = (Path(__file__).parents[2] / "docs" / "attention.md").read_text(encoding="utf-8")
    table = text.split("| source |\n")[1].split("\n\n")[0].replace("\\|", "¦")
    found = [
        [cell.strip().replace("¦", "|").replace("`", "") for cell in line.split("|")[1:-1]]
        for line in table.splitlines()[1:]
    ]
    described = [
        [", ".join([name, *kind.variants]), kind.description, kind.source]
        for name, kind in scoring_classes().items()
    ]
    assert [[name, weight, source] for name, weight, _, source in found] == described
    for (_, _, parameters, _), kind in zip(found, scoring_classes().values(), strict=True):
        assert all(field.name in parameters for field in dataclasses.fields(kind.Config))


@pytest.mark.parametrize("config", [*variants().values(), *MIXTURES])
def test_a_config_survives_as_plain_values(config):
    values = json.loads(json.dumps(scoring_to_dict(config)))
    again = scoring_from_dict(values)
    assert again == config and scoring_to_dict(again) == values
    assert build_scoring(again, heads=4).name == values["name"]


@pytest.mark.parametrize(
    "heads, shares, expected",
    [
        (8, [0.5, 0.5], [4, 4]),
        (3, [0.5, 0.5], [2, 1]),
        (24, [0.25, 0.25, 0.5], [6, 6, 12]),
        (6, [1 / 3, 1 / 3, 1 / 3], [2, 2, 2]),
        (12, [0.1] * 10, [1, 1, 2, 1, 1, 1, 1, 2, 1, 1]),
        (4, [1, 3], [1, 3]),
        (2, [1.0], [2]),
    ],
)
def test_shares_become_whole_heads(heads, shares, expected):
    mixed = build_scoring(MixedConfig([["softmax", share] for share in shares]), heads)
    assert [group.heads for group in mixed.groups] == expected


@pytest.mark.parametrize("heads, shares", [(4, [2, 3]), (8, [2, 3]), (1, [0.5, 0.5]), (4, [0.95, 0.05])])
def test_groups_that_do_not_fit_a_layer_are_refused(heads, shares):
    with pytest.raises(ConfigError, match=f"in a layer with {heads}; every group needs a head"):
        build_scoring(MixedConfig([["softmax", share] for share in shares]), heads)


@pytest.mark.parametrize(
    "groups, says",
    [
        ([], "groups = .* is out of its domain; groups is a list of"),
        ("softmax", "is out of its domain"),
        ([["softmax", 0.5], ["ssa", 0.4]], "shares that sum to 1"),
        ([["softmax", 1], ["ssa", 0.5]], "all heads counts, or all shares"),
        ([["softmax", 0], ["ssa", 1]], "is out of its domain"),
        ([["softmax", True], ["ssa", 1]], "is out of its domain"),
        ([["softmax", -0.5], ["ssa", 1.5]], "is out of its domain"),
        ([["softmax", "half"]], "is out of its domain"),
        ([["softmax"]], "is out of its domain"),
        ([["sofmax", 1.0]], "unknown scoring 'sofmax'; did you mean 'softmax'"),
        ([[7, 1.0]], "unknown scoring '7'"),
        ([[{"n": 2.0}, 1.0]], "unknown scoring 'None'"),
        ([[{"name": "ssa", "m": 2}, 1.0]], "has no parameter 'm'"),
        ([[{"name": "ssa", "b": -1}, 1.0]], "b is greater than 0"),
        ([[{"name": "ssa", "granularity": "model"}, 1.0]], "a group has granularity 'model'"),
    ],
)
def test_broken_groups_are_refused(groups, says):
    with pytest.raises(ConfigError, match=says):
        MixedConfig(groups)


@pytest.mark.parametrize(
    "values, says",
    [
        ({"tau": 0.0}, "tau = 0.0 .*at least 0.001"),
        ({"tau": -1.0}, "tau is at least 0.001"),
        ({"tau": math.nan}, "tau = nan"),
        ({"tau": "hot"}, "tau = 'hot'"),
        ({"tau": 0.001}, "greater than 0.001 where learn_tau"),
        ({"learn_tau": "maybe"}, "learn_tau is true or false"),
        ({"granularity": "token"}, "head, layer or model"),
    ],
)
def test_a_temperature_out_of_domain_is_refused(values, says):
    with pytest.raises(ConfigError, match=says):
        TemperatureConfig(**values)


@pytest.mark.parametrize("granularity, count", [("head", 4), ("layer", 1), ("model", 1)])
def test_a_learned_temperature_is_reported_in_its_domain(granularity, count):
    scoring = build_scoring(TemperatureConfig(tau=2.5, granularity=granularity), heads=4)
    assert scoring.learned()["tau"].tolist() == pytest.approx([2.5] * count)
    assert list(scoring.state_dict()) == ["raw_tau"] and scoring.shared == (granularity == "model")


def test_fixed_numbers_are_not_learned():
    fixed = build_scoring(TemperatureConfig(tau=0.001, learn_tau=False, granularity="model"), heads=4)
    assert not fixed.learned() and not fixed.state_dict() and not fixed.shared


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax", "linear"])
def test_scorings_without_parameters_take_none(name):
    with pytest.raises(ConfigError, match="it has no parameters"):
        scoring_config(name, tau=2.0)


def test_a_config_of_something_else_is_refused():
    with pytest.raises(ConfigError, match="is not the config of a scoring"):
        build_scoring(object(), heads=2)


def test_ssa_in_a_group_keeps_its_own_parameters():
    mixed = build_scoring(MixedConfig([["softmax", 1], [SSAConfig(n=1.7), 3]]), heads=4)
    assert mixed.learned()["1.n"].tolist() == pytest.approx([1.7] * 3)
    assert set(mixed.state_dict()) == {"groups.1.raw_n", "groups.1.raw_b"}


@pytest.mark.parametrize(
    "variant, changes, name",
    [
        ("ssa-1.5", {"b": 0.8}, "ssa-1.5"),
        ("ssa-1.5", {"n": 2}, "ssa-2"),
        ("ssa", {"n": 1.7, "granularity": "layer"}, "ssa, n 1.7, granularity layer"),
        ("ssa-2", {"learn_b": False}, "ssa-2-fixed"),
        ("nosuch", {"n": 2}, "nosuch"),
    ],
)
def test_a_changed_variant_is_called_what_it_is(variant, changes, name):
    assert variant_name(variant, changes) == name


def test_the_scoring_that_a_run_records_has_the_name_of_its_variant():
    """A model fills in what its variant leaves open, and config.yaml has tuples as lists."""
    for variant, config in variants().items():
        recorded = json.loads(json.dumps(scoring_settings(fit_scoring(config, 40))))
        assert variant_name(variant, recorded) == variant
