"""What a shift does to trained models: scale, length and one deviant number, over variants and seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import AutoModel

from babyssa.attention import scorings
from babyssa.comparison.statistics import t_interval
from babyssa.console import progress, quiet_transformers
from babyssa.errors import DataError, ModelError
from babyssa.files import check_checksums, versions
from babyssa.models.loading import weights_sha256
from babyssa.models.run_config import read_settings
from babyssa.probing.attention import forming_weights
from babyssa.synthetic.baselines import baselines
from babyssa.synthetic.config import Shifts
from babyssa.synthetic.model import InContextTransformer
from babyssa.synthetic.tasks import Sample, Shift, Task, task_named
from babyssa.synthetic.training import EVALUATION_STREAM, predict
from babyssa.training.run_folder import flat, is_finished

IN_DISTRIBUTION = "in distribution"
# The sequences of the deviant, and the predictions after its place, with an ordinary number in that place.
CONTROL = "without the deviant"
BASELINE = "softmax"
_RESAMPLES = 1000
# Least squares are fitted anew at every k of every sequence.
BASELINE_SEQUENCES = 100
_WEIGHT_SEQUENCES = 128
# What may differ between the models of a task, and what does not make a model another one.
_MODEL = ("variant", "scoring.", "size.blocks")
_NOT_THE_MODEL = (
    "out",
    "seed",
    "evaluate_every",
    *(f"optimisation.{key}" for key in ("log_every", "checkpoint_every", "resume_every", "report_to")),
)
_RUN = ["task", "model", "variant", "blocks", "seed"]


@dataclass(frozen=True)
class Run:
    """A trained model and what it was trained as; `settings` are those of its config.yaml, by dotted key."""

    folder: Path
    settings: dict[str, object]
    task: Task
    variant: str
    blocks: str
    seed: int
    length: int
    model: nn.Module

    @property
    def key(self) -> dict[str, object]:
        """The columns that name this run in every table."""
        return {
            "task": self.task.name,
            "model": self.variant if self.blocks == "full" else f"{self.variant}, {self.blocks} only",
            "variant": self.variant,
            "blocks": self.blocks,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class ShiftResults:
    """What :func:`measure_shifts` found; accuracies in 0..1, squared errors in units of the variance of y.

    Parameters
    ----------
    runs : DataFrame
        task, model, variant, blocks, seed, shift, value (mean over k, of linear functions from the third
        example on), low, high (95%, bootstrap over
        sequences), last (at the last k), n.
    positions : DataFrame
        The same at each k, from 1: value, low, high.
    models : DataFrame
        Over seeds: value, sd, low, high (95%, Student's t), last, seeds; pairs, how many seeds Softmax with the
        same blocks has too, and over them the mean difference to it, difference_low, difference_high.
        Intervals are NaN where there is one seed or pair, and none goes below 0, or above an accuracy of 1.
    deviant_weights : DataFrame
        Attention weight on the deviant number by layer and head, mean over the queries after it, and
        `uniform`, what it were if every number before the query weighed the same.
    maps : dict
        By task and model: the attention weights on the first sequence with the deviant, where the model
        forms any.
    provenance : dict
        What the numbers come from: each run's folder and the hash of its weights, the shifts, the versions.
    """

    runs: pd.DataFrame
    positions: pd.DataFrame
    models: pd.DataFrame
    deviant_weights: pd.DataFrame
    maps: dict[tuple[str, str], AttentionMap]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class AttentionMap:
    """The attention weights of a model, of its first seed, on one sequence.

    Parameters
    ----------
    values : array, (numbers,)
        The sequence.
    layers : list of array
        (heads, query, key) for each layer.
    """

    values: np.ndarray
    layers: list[np.ndarray]


def shifts_of(task: Task, chosen: Shifts) -> dict[str, Shift]:
    """The shifts of a task by name, the training distribution first."""
    shifts = {IN_DISTRIBUTION: Shift()}
    for scale in chosen.scales:
        shifts[f"inputs x {scale:g}"] = Shift(input_scale=scale)
    if task.name == "linear":
        for scale in chosen.scales:
            shifts[f"coefficients x {scale:g}"] = Shift(coefficient_scale=scale)
        for scale in chosen.scales:
            shifts[f"both x {scale:g}"] = Shift(input_scale=scale, coefficient_scale=scale)
    for length in chosen.lengths:
        shifts[f"length {length}"] = Shift(length=length)
    if chosen.deviant:
        shifts[CONTROL] = Shift(deviant=chosen.deviant, control=True)
        shifts[f"deviant {chosen.deviant:g}"] = Shift(deviant=chosen.deviant)
    return shifts


def load_run(folder: Path) -> Run:
    """Load a run of ``babyssa train synthetic``.

    Raises
    ------
    DataError, ModelError, DamageError
        If the folder holds no finished run on a synthetic task, or one of its files has changed since.
    """
    folder = Path(folder)
    settings = read_settings(folder)
    if settings.get("kind") != "synthetic":
        raise ModelError(
            f"not a run on a synthetic task but of kind '{settings.get('kind')}'",
            path=folder,
            remedy="give folders that 'babyssa train synthetic' wrote",
        )
    if not is_finished(folder):
        raise ModelError("the run is not finished", path=folder, remedy="run its command again")
    check_checksums(folder)
    with quiet_transformers():
        model = AutoModel.from_pretrained(folder)
    if not isinstance(model, InContextTransformer):
        raise ModelError(f"{type(model).__name__} does not read numbers", path=folder)
    return Run(
        folder=folder,
        settings=flat(settings),
        task=task_named(settings["task"]),
        variant=settings["variant"],
        blocks=settings["size"]["blocks"],
        seed=settings["seed"],
        length=settings["length"],
        model=model.eval(),
    )


def measure_shifts(folders: Sequence[Path], shifts: Shifts | None = None) -> ShiftResults:
    """Measure trained models under every shift, all on the same sequences, with baselines beside them.

    Parameters
    ----------
    folders : sequence of Path
        Run folders of ``babyssa train synthetic``, of any tasks, variants and seeds.
    shifts : Shifts
        What is measured.

    Raises
    ------
    DataError, ModelError
        If a folder holds no such run, two are of one model and seed, or a length is beyond a model.
    """
    shifts = shifts or Shifts()
    runs = [load_run(folder) for folder in folders]
    if not runs:
        raise DataError("no run to measure", remedy="give folders that 'babyssa train synthetic' wrote")
    _refuse(runs, shifts)
    summaries, positions, weights, maps = [], [], [], {}
    for task_name in dict.fromkeys(run.task.name for run in runs):
        of_task = [run for run in runs if run.task.name == task_name]
        task, length = of_task[0].task, of_task[0].length
        simple = baselines(task, length)
        conditions = shifts_of(task, shifts)
        for name, shift in progress(conditions.items(), f"{task_name}: shifts", total=len(conditions)):
            generator = np.random.default_rng([shifts.seed, EVALUATION_STREAM, 1])
            sample = task.sample(generator, shifts.sequences, length, shift)
            for run in of_task:
                values = task.measure(predict(run.model, task, sample), sample) / task.unit(shift)
                _add(run.key, name, task, sample, values, summaries, positions)
                if sample.deviant is not None and not shift.control:
                    weights += [{**run.key, **row} for row in deviant_weights(run.model, task, sample)]
                    shown = weights_of(run.model, torch.from_numpy(sample.values[:1]))
                    if shown is not None:
                        first = AttentionMap(sample.values[0], [layer[0] for layer in shown])
                        maps.setdefault((task_name, run.key["model"]), first)
            fewer = _first(sample, BASELINE_SEQUENCES)
            for baseline, predictions in simple.items():
                values = task.measure(predictions(fewer), fewer) / task.unit(shift)
                key = {"task": task_name, "model": baseline, "variant": baseline, "blocks": "baseline", "seed": 0}
                _add(key, name, task, fewer, values, summaries, positions)
    table = pd.DataFrame(summaries)
    return ShiftResults(
        runs=table,
        positions=pd.DataFrame(positions),
        models=_over_seeds(table),
        deviant_weights=pd.DataFrame(weights, columns=[*_RUN, "layer", "head", "weight", "uniform"]),
        maps=maps,
        provenance={
            "runs": [
                {**run.key, "folder": str(run.folder), "model_sha256": weights_sha256(run.model)} for run in runs
            ],
            "shifts": dataclasses.asdict(shifts),
            "baseline_sequences": BASELINE_SEQUENCES,
            "versions": versions(),
        },
    )


def deviant_weights(model: nn.Module, task: Task, sample: Sample) -> list[dict[str, float]]:
    """Mean attention weight on the deviant number, over the queries after it, by layer and head.

    Returns nothing for a model that forms no attention weights.
    """
    sample = _first(sample, _WEIGHT_SEQUENCES)
    attentions = weights_of(model, torch.from_numpy(sample.values))
    if attentions is None:
        return []
    place = sample.deviant * task.numbers_per_example
    numbers = sample.values.shape[1]
    after = np.arange(numbers) > place[:, None]
    uniform = float((1.0 / np.arange(1, numbers + 1))[None].repeat(len(place), 0)[after].mean())
    rows = []
    for layer, heads in enumerate(attentions):
        on_deviant = np.take_along_axis(heads, place[:, None, None, None], axis=3)[..., 0]
        for head in range(heads.shape[1]):
            weight = float(on_deviant[:, head][after].mean())
            rows.append({"layer": layer + 1, "head": head + 1, "weight": weight, "uniform": uniform})
    return rows


def weights_of(model: nn.Module, values: torch.Tensor) -> list[np.ndarray] | None:
    """Attention weights of each layer, (batch, heads, query, key); None where the model forms none."""
    if model.config.blocks == "feed-forward" or not all(s.forms_weights for s in scorings(model).values()):
        return None
    with torch.inference_mode(), forming_weights(model):
        attentions = model(values=values, output_attentions=True).attentions
    return [layer.float().numpy() for layer in attentions]


def _refuse(runs: Sequence[Run], shifts: Shifts) -> None:
    seen: dict[tuple, Run] = {}
    for run in runs:
        other = seen.setdefault(tuple(run.key.values()), run)
        if other is not run:
            raise DataError(
                f"the same model and seed as {other.folder}", path=run.folder, remedy="leave one of the two out"
            )
    first: dict[str, Run] = {}
    for run in runs:
        _refuse_other_settings(first.setdefault(run.task.name, run), run, _MODEL)
        _refuse_other_settings(next(r for r in runs if r.key | {"seed": 0} == run.key | {"seed": 0}), run, ())
    for run in runs:
        most = run.model.config.n_positions
        for length in shifts.lengths:
            numbers = length * run.task.numbers_per_example - run.task.numbers_per_example + 1
            if numbers > most:
                raise DataError(
                    f"a length of {length} takes {numbers} numbers, and the model has {most} positions",
                    path=run.folder,
                    remedy="leave that length out, or train with a larger size.max_numbers",
                )


def _refuse_other_settings(one: Run, other: Run, may_differ: tuple[str, ...]) -> None:
    """Raise DataError if two runs differ in more than their seed and what `may_differ`, naming it."""
    for key in dict.fromkeys([*one.settings, *other.settings]):
        if key in _NOT_THE_MODEL or key.startswith(("facts.", "versions.", *may_differ)):
            continue
        if one.settings.get(key) != other.settings.get(key):
            raise DataError(
                f"{key} is {other.settings.get(key)!r}, and {one.settings.get(key)!r} in {one.folder}",
                path=other.folder,
                remedy="compare runs that differ in scoring, blocks and seed alone",
            )


def _add(key, name, task, sample, values, summaries, positions) -> None:
    """One row for a run under a shift, and one for each k."""
    value, by_k, (low, high), (lows, highs) = _estimate(task, sample, values)
    last = by_k[~np.isnan(by_k)][-1]
    summaries.append(
        {**key, "shift": name, "value": value, "low": low, "high": high, "last": last, "n": len(values)}
    )
    for k, (at_k, k_low, k_high) in enumerate(zip(by_k, lows, highs, strict=True), start=1):
        if not np.isnan(at_k):
            positions.append({**key, "shift": name, "k": k, "value": at_k, "low": k_low, "high": k_high})


def _estimate(task: Task, sample: Sample, values: np.ndarray):
    """Mean over k and value at each k, each with its 95% bootstrap interval over sequences.

    With a deviant number, only predictions after it count. The mean leaves out what no context can tell.
    """
    counted = np.ones(values.shape, dtype=bool)
    if sample.deviant is not None:
        counted = np.arange(values.shape[1]) > sample.deviant[:, None]
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(len(values), np.full(len(values), 1 / len(values)), size=_RESAMPLES)
    weights = np.concatenate([np.ones((1, len(values))), drawn])
    by_k = []
    for group in task.groups(sample):
        member = (group & counted).astype(np.float64)
        total = weights @ member
        by_k.append(
            np.divide(weights @ (values * member), total, out=np.full(total.shape, np.nan), where=total > 0)
        )
    by_k = np.mean(by_k, axis=0)
    # A k without one of the classes has no value, and a resample without one does not count at this k.
    known = ~np.isnan(by_k[0])
    overall = np.nanmean(by_k[:, known & (np.arange(len(known)) >= task.first_determined)], axis=1)
    lows, highs = np.full((2, values.shape[1]), np.nan)
    lows[known], highs[known] = np.nanquantile(by_k[1:, known], [0.025, 0.975], axis=0)
    return overall[0], by_k[0], np.quantile(overall[1:], [0.025, 0.975]), (lows, highs)


def _over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds, and the difference to Softmax with the same seed and blocks."""
    rows = []
    for (task, model, shift), of_model in runs.groupby(["task", "model", "shift"], sort=False):
        blocks = of_model.blocks.iloc[0]
        base = runs[(runs.task == task) & (runs["shift"] == shift) & (runs.blocks == blocks)]
        base = base[base.variant == BASELINE].set_index("seed").value
        paired = of_model[of_model.seed.isin(base.index)]
        differences = paired.value.to_numpy() - base.loc[paired.seed].to_numpy()
        is_base = of_model.variant.iloc[0] == BASELINE
        low, high = _interval(of_model.value)
        low = np.maximum(low, 0.0)
        if task != "linear":
            high = np.minimum(high, 1.0)
        difference_low, difference_high = (np.nan, np.nan) if is_base else _interval(differences)
        rows.append(
            {
                "task": task,
                "model": model,
                "blocks": blocks,
                "shift": shift,
                "seeds": len(of_model),
                "pairs": 0 if is_base else len(differences),
                "value": of_model.value.mean(),
                "sd": of_model.value.std(ddof=1) if len(of_model) > 1 else np.nan,
                "low": low,
                "high": high,
                "last": of_model["last"].mean(),
                "difference": np.nan if is_base or not len(differences) else differences.mean(),
                "difference_low": difference_low,
                "difference_high": difference_high,
            }
        )
    return pd.DataFrame(rows)


def _interval(values) -> tuple[float, float]:
    return t_interval(values) if len(values) > 1 else (np.nan, np.nan)


def _first(sample: Sample, count: int) -> Sample:
    deviant = None if sample.deviant is None else sample.deviant[:count]
    return Sample(sample.values[:count], sample.targets[:count], sample.weights[:count], deviant)
