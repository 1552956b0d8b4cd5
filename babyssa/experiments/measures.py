"""What an experiment measures of each trained model: one function per kind, from run folder and options to rows.

To add a kind, write a dataclass of its options, a function, and an entry in ``KINDS``. Imports nothing heavy: the
command line checks the options of a YAML file with these classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from babyssa.errors import DataError
from babyssa.synthetic.config import Shifts

if TYPE_CHECKING:
    from babyssa.comparison.cells import Measured
    from babyssa.models.loading import LoadedModel
    from babyssa.probing.suites import Suite

LANGUAGE = ("encoder", "decoder")
EVERY = (*LANGUAGE, "synthetic")


@dataclass(frozen=True)
class Pairs:
    """A suite of minimal pairs: accuracy by paradigm.

    Parameters
    ----------
    suite : str
        A suite of minimal pairs, or "packaged".
    order : {"bad-first", "good-first"}, optional
        Order within pairs, where the suite does not state it.
    method : str, optional
        Scoring method; pll for masked models and loglik for causal ones if not given.
    limit : int, optional
        Only so many pairs of each paradigm.
    """

    suite: str = "packaged"
    order: Literal["bad-first", "good-first"] | None = None
    method: str | None = None
    limit: int | None = None

    def load_suite(self) -> Suite:
        """The pairs themselves."""
        return _load_suite(self.suite, self.order).select(limit=self.limit)


@dataclass(frozen=True)
class Texts:
    """Perplexity, or a masked model's pseudo-perplexity, of some texts.

    Parameters
    ----------
    texts : tuple of str
        Files or datasets.
    documents : {"lines", "blocks", "file"}, optional
        How documents are laid out in a text file; as the model was trained if not given.
    split : str, optional
        Split of a dataset.
    limit : int, optional
        Documents of each text; all if not given.
    streaming : bool
        Fetch the rows of a dataset as they are read.
    """

    texts: tuple[str, ...]
    documents: Literal["lines", "blocks", "file"] | None = None
    split: str | None = None
    limit: int | None = None
    streaming: bool = False


@dataclass(frozen=True)
class Logged:
    """What the run itself measured at its last step; it has no options."""


@dataclass(frozen=True)
class Harness:
    """Tasks of lm-evaluation-harness.

    Parameters
    ----------
    tasks : tuple of str
        Their names.
    include_path : str, optional
        A folder of tasks of your own.
    limit : int, optional
        Examples per task.
    fewshot : int, optional
        Solved examples in each prompt.
    """

    tasks: tuple[str, ...]
    include_path: str | None = None
    limit: int | None = None
    fewshot: int | None = None


@dataclass(frozen=True)
class Saturating:
    """How the scoring saturates, with the numbers that each head learned.

    Parameters
    ----------
    keys : int
        Number of keys, the leading one included.
    at : float
        The lead of one logit, and the factor by which all are magnified.
    """

    keys: int = 16
    at: float = 10.0


@dataclass(frozen=True)
class Measure:
    """One measure of an experiment.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    options : dataclass
        Of that kind, as the YAML file has them.
    data : dict of str to str
        The paths of the data that options name.
    """

    kind: str
    options: Any
    data: dict[str, str] = field(default_factory=dict)

    @property
    def resolved(self) -> Any:
        """The options with paths in place of the names of data."""

        def path_of(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(path_of, value))
            return self.data.get(value, value) if isinstance(value, str) else value

        return type(self.options)(**{key: path_of(value) for key, value in vars(self.options).items()})

    def entry(self) -> dict[str, Any]:
        """Kind and options as cell.json has them."""
        return {"kind": self.kind, "options": json.loads(json.dumps(vars(self.options)))}

    def __call__(self, folder: Path) -> Measured:
        """Measure the model of a run folder."""
        return KINDS[self.kind].measure(folder, self.resolved)


@cache
def _load_suite(suite: str, order: Literal["bad-first", "good-first"] | None) -> Suite:
    """A suite, read once for all cells."""
    from babyssa.probing.suites import load_suite

    return load_suite(suite, order)


def measure_pairs(folder: Path, options: Pairs) -> Measured:
    """The mean accuracy over a suite's paradigms, that of each of them, and the margin of every pair."""
    import numpy as np

    from babyssa.comparison.cells import Measured, quantize
    from babyssa.probing.accuracy import probe

    result = probe(folder, options.load_suite(), method=options.method)
    margins = np.concatenate([good - bad for good, bad in (scores.T for scores in result.scores.values())])
    # Where the model was when it was measured says nothing later.
    summary = json.loads(json.dumps({**result.summary(), "model": folder.name}))
    return Measured({"mean over paradigms": result.accuracy}, "accuracy", suite=summary, margins=quantize(margins))


def check_pairs(model: LoadedModel, options: Pairs) -> None:
    """Raise where a model like this one could not be measured."""
    from babyssa.probing import check_suite

    check_suite(model, options.load_suite(), options.method)


def measure_texts(folder: Path, options: Texts) -> Measured:
    """Perplexity per token of each text."""
    from babyssa.comparison.cells import Measured
    from babyssa.models.text_perplexity import perplexities

    found = perplexities(folder, **vars(options)).texts
    return Measured({Path(text.file).name: text.perplexity for text in found}, f"{found[0].kind} per token")


def measure_held_out(folder: Path, options: Logged) -> Measured:
    """What the run measured at its last step: of what was held out of training, or of new sequences."""
    from babyssa.comparison.cells import Measured

    path = folder / "log.jsonl"
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise DataError("cannot be read", path=path, remedy="train this run again") from error
    measured = [record for record in records if "loss" not in record]
    if not measured:
        raise DataError("has no measurement", path=path, remedy="train with evaluation.held-out above 0")
    values = {name: value for name, value in measured[-1].items() if name not in ("step", "seconds", "scoring")}
    return Measured(values, "held-out data")


def measure_scoring(folder: Path, options: Logged) -> Measured:
    """The numbers of the scoring after training, such as n and b: mean, least and greatest over all heads."""
    from babyssa.comparison.cells import Measured
    from babyssa.probing.heads import learned_numbers

    found = learned_numbers(folder)
    values = {}
    for name in found.names:
        of_heads = [head.numbers[name] for head in found.heads if name in head.numbers]
        values[f"{name}, mean"] = sum(of_heads) / len(of_heads)
        values |= {f"{name}, least": min(of_heads), f"{name}, greatest": max(of_heads)}
    heads = [{"layer": head.layer, "head": head.head, **head.numbers} for head in found.heads]
    return Measured(values, "number of the scoring", details={"heads": heads})


def measure_saturation(folder: Path, options: Saturating) -> Measured:
    """The weight left to the other keys, mean over heads, where one logit leads and where all are magnified."""
    import numpy as np

    from babyssa.comparison.cells import Measured
    from babyssa.probing.saturation import saturation

    curves = saturation([str(folder)], keys=options.keys).curves
    left: dict[str, list[float]] = {}
    # Softmax, under its own name, stands beside the heads of every model.
    for curve in (curve for curve in curves if curve.scoring != "softmax"):
        at = float(np.interp(np.log(options.at), np.log(curve.x), curve.mass))
        left.setdefault(f"{curve.condition} {options.at:g}", []).append(at)
    return Measured({name: float(np.mean(shares)) for name, shares in left.items()}, "weight left to other keys")


def measure_harness(folder: Path, options: Harness) -> Measured:
    """Every metric of each task."""
    from babyssa.comparison.cells import Measured
    from babyssa.decoder.harness import evaluate

    found = evaluate(folder, **vars(options))
    values = {f"{task.name} {name}": value for task in found.tasks for name, value in task.metrics.items()}
    return Measured(values, "metric", details={task.name: task.standard_errors for task in found.tasks})


def measure_shift(folder: Path, options: Shifts) -> Measured:
    """The task's metrics under every shift, data like those of training first."""
    from babyssa.comparison.cells import Measured
    from babyssa.synthetic import measure_shifts
    from babyssa.synthetic.shift_report import SIMPLE

    values: dict[str, float] = {}
    simple: dict[str, dict[str, float]] = {}
    for row in measure_shifts([folder], options).runs.itertuples(index=False):
        of_model = simple.setdefault(row.model, {}) if row.settings == SIMPLE else values
        of_model[f"{row.measure}, {row.data}: {row.shift}"] = row.value
    return Measured(values, "shift", details={"simple predictors": simple})


class Kind(NamedTuple):
    """A kind of measure: its options, its function, the settings it is for, and a check before training."""

    options: type
    measure: Callable[[Path, Any], Measured]
    settings: tuple[str, ...]
    check: Callable[[LoadedModel, Any], None] | None = None


KINDS = {
    "pairs": Kind(Pairs, measure_pairs, LANGUAGE, check_pairs),
    "perplexity": Kind(Texts, measure_texts, LANGUAGE),
    "held-out": Kind(Logged, measure_held_out, EVERY),
    "scoring": Kind(Logged, measure_scoring, EVERY),
    "saturation": Kind(Saturating, measure_saturation, EVERY),
    "harness": Kind(Harness, measure_harness, ("decoder",)),
    "shift": Kind(Shifts, measure_shift, ("synthetic",)),
}
