"""What a shift does to trained models: scale, length and one deviant number, over variants and seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from babyssa.synthetic.shift_report import BASELINE, AttentionMap, ShiftResults
from babyssa.synthetic.tasks import CONTROL, IN_DISTRIBUTION, Sample, Shift, Task, task_named
from babyssa.synthetic.training import EVALUATION_STREAM, predict
from babyssa.training.run_folder import flat, is_finished

_RESAMPLES = 1000
# Least squares are fitted anew at every k of every sequence.
_BASELINE_SEQUENCES = 100
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
    model: nn.Module

    @property
    def key(self) -> dict[str, object]:
        """The columns that name this run in every table."""
        variant, blocks = self.settings["variant"], self.settings["size.blocks"]
        model = variant if blocks == "full" else f"{variant}, {blocks} only"
        return dict(zip(_RUN, (self.task.name, model, variant, blocks, self.settings["seed"]), strict=True))


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
    return Run(folder, flat(settings), task_named(settings["task"], settings.get("answers", False)), model.eval())


def measure_shifts(folders: Iterable[Path], shifts: Shifts | None = None) -> ShiftResults:
    """Measure trained models under every shift, all on the same sequences, with baselines beside them.

    Parameters
    ----------
    folders : iterable of Path
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
    _check_runs(runs)
    _check_lengths(runs, shifts)
    summaries, positions, weights, maps = [], [], [], {}
    for task in dict.fromkeys(run.task for run in runs):
        of_task = [run for run in runs if run.task is task]
        length = of_task[0].settings["length"]
        conditions = _shifts_of(task, shifts)
        simple = baselines(task, length)
        for name, shift in progress(conditions.items(), f"{task.name}: shifts", total=len(conditions)):
            generator = np.random.default_rng([shifts.seed, EVALUATION_STREAM, 1])
            sample = task.sample(generator, shifts.sequences, length, shift)
            fewer = sample.first(_BASELINE_SEQUENCES)
            measured = [(run.key, sample, predict(run.model, task, sample)) for run in of_task]
            measured += [
                (dict(zip(_RUN, (task.name, baseline, baseline, "baseline", 0), strict=True)), fewer, fit(fewer))
                for baseline, fit in simple.items()
            ]
            for key, measured_on, predictions in measured:
                values = task.measure(predictions, measured_on) / task.unit(shift)
                summary, by_k = _estimate(task, measured_on, values)
                summaries.append({**key, "shift": name, **summary})
                positions += [{**key, "shift": name, **row} for row in by_k]
            if shift.deviant is not None and not shift.control:
                for run in of_task:
                    weights += [{**run.key, **row} for row in deviant_weights(run.model, task, sample)]
                    shown = weights_of(run.model, sample.first(1))
                    if shown is not None:
                        first = AttentionMap(sample.values[0], [layer[0] for layer in shown])
                        maps.setdefault((task.name, run.key["model"]), first)
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
            "baseline_sequences": _BASELINE_SEQUENCES,
            "versions": versions(),
        },
    )


def deviant_weights(model: nn.Module, task: Task, sample: Sample) -> list[dict[str, float]]:
    """Mean attention weight on the deviant number, over the queries after it, by layer and head.

    Returns nothing for a model that forms no attention weights.
    """
    sample = sample.first(_WEIGHT_SEQUENCES)
    attentions = weights_of(model, sample)
    if attentions is None:
        return []
    place = sample.deviant * task.numbers_per_example
    numbers = sample.values.shape[1]
    after = np.arange(numbers) > place[:, None]
    uniform = float((1.0 / np.arange(1, numbers + 1))[None].repeat(len(place), 0)[after].mean())
    rows = []
    for layer, heads in enumerate(attentions, start=1):
        on_deviant = np.take_along_axis(heads, place[:, None, None, None], axis=3)[..., 0]
        for head in range(heads.shape[1]):
            weight = float(on_deviant[:, head][after].mean())
            rows.append({"layer": layer, "head": head + 1, "weight": weight, "uniform": uniform})
    return rows


def weights_of(model: nn.Module, sample: Sample) -> list[np.ndarray] | None:
    """Attention weights of each layer, (sequences, heads, query, key); None where the model forms none."""
    if model.config.blocks == "feed-forward" or not all(s.forms_weights for s in scorings(model).values()):
        return None
    with torch.inference_mode(), forming_weights(model):
        attentions = model(values=torch.from_numpy(sample.values), output_attentions=True).attentions
    return [layer.float().numpy() for layer in attentions]


def _shifts_of(task: Task, chosen: Shifts) -> dict[str, Shift]:
    """The shifts of a task by name, the training distribution first."""
    shifts = {IN_DISTRIBUTION: Shift()}
    kinds = {"inputs": ("input_scale",)}
    if task.name == "linear":
        kinds |= {"coefficients": ("coefficient_scale",), "both": ("input_scale", "coefficient_scale")}
    for kind, scaled in kinds.items():
        for scale in chosen.scales:
            shifts[f"{kind} x {scale:g}"] = Shift(**dict.fromkeys(scaled, scale))
    for length in chosen.lengths:
        shifts[f"length {length}"] = Shift(length=length)
    if chosen.deviant:
        shifts[CONTROL] = Shift(deviant=chosen.deviant, control=True)
        shifts[f"deviant {chosen.deviant:g}"] = Shift(deviant=chosen.deviant)
    return shifts


def _check_runs(runs: Sequence[Run]) -> None:
    """Raise DataError if a model and seed come twice, or runs of one task or model have other settings."""
    seen: dict[tuple, Run] = {}
    for run in runs:
        other = seen.setdefault(tuple(run.key.values()), run)
        if other is not run:
            raise DataError(
                f"the same model and seed as {other.folder}", path=run.folder, remedy="leave one of the two out"
            )
    first: dict[tuple, Run] = {}
    for run in runs:
        _check_same_settings(first.setdefault((run.task.name,), run), run, _MODEL)
        _check_same_settings(first.setdefault((run.task.name, run.key["model"]), run), run, ())


def _check_same_settings(one: Run, other: Run, may_differ: tuple[str, ...]) -> None:
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


def _check_lengths(runs: Sequence[Run], shifts: Shifts) -> None:
    """Raise DataError if a model has too few positions for a length."""
    for run in runs:
        most = run.model.config.n_positions
        for length in shifts.lengths:
            numbers = (length - 1) * run.task.numbers_per_example + 1
            if numbers > most:
                raise DataError(
                    f"a length of {length} takes {numbers} numbers, and the model has {most} positions",
                    path=run.folder,
                    remedy="leave that length out, or train with a larger size.max_numbers",
                )


def _estimate(task: Task, sample: Sample, values: np.ndarray) -> tuple[dict[str, float], list[dict[str, float]]]:
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
    known = np.flatnonzero(~np.isnan(by_k[0]))
    overall = np.nanmean(by_k[:, known[known >= task.first_determined]], axis=1)
    low, high = np.quantile(overall[1:], [0.025, 0.975])
    lows, highs = np.nanquantile(by_k[1:, known], [0.025, 0.975], axis=0)
    at_known = by_k[0, known]
    summary = {"value": overall[0], "low": low, "high": high, "last": at_known[-1], "n": len(values)}
    rows = zip(known + 1, at_known, lows, highs, strict=True)
    return summary, [dict(zip(("k", "value", "low", "high"), row, strict=True)) for row in rows]


def _over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds, and the difference to Softmax with the same seed and blocks."""
    rows = []
    for (task, model, shift), of_model in runs.groupby(["task", "model", "shift"], sort=False):
        blocks = of_model.blocks.iloc[0]
        base = runs[(runs.task == task) & (runs["shift"] == shift) & (runs.blocks == blocks)]
        base = base[base.variant == BASELINE].set_index("seed").value
        paired = of_model[of_model.seed.isin(base.index) & (of_model.variant != BASELINE)]
        differences = paired.value.to_numpy() - base.loc[paired.seed].to_numpy()
        low, high = _interval(of_model.value)
        difference_low, difference_high = _interval(differences)
        rows.append(
            {
                "task": task,
                "model": model,
                "blocks": blocks,
                "shift": shift,
                "seeds": len(of_model),
                "pairs": len(differences),
                "value": of_model.value.mean(),
                "sd": of_model.value.std(),
                "low": np.maximum(low, 0.0),
                "high": high if task_named(task).metric != "accuracy" else np.minimum(high, 1.0),
                "last": of_model["last"].mean(),
                "difference": differences.mean() if len(differences) else np.nan,
                "difference_low": difference_low,
                "difference_high": difference_high,
            }
        )
    return pd.DataFrame(rows)


def _interval(values) -> tuple[float, float]:
    return t_interval(values) if len(values) > 1 else (np.nan, np.nan)
