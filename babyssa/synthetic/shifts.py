"""What a shift does to trained models: scale, length and one deviant number, over variants and seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from torch import nn
from transformers import AutoModel

from babyssa.attention import variant_name
from babyssa.comparison.statistics import t_interval
from babyssa.console import progress, quiet_transformers
from babyssa.errors import DataError, ModelError
from babyssa.files import check_checksums, versions
from babyssa.models.loading import weights_sha256
from babyssa.models.run_config import CONFIG, read_settings
from babyssa.synthetic.baselines import baselines
from babyssa.synthetic.config import Data, Shifts, SyntheticTraining
from babyssa.synthetic.magnitudes import deviant_weights, magnitudes, weights_of
from babyssa.synthetic.model import InContextTransformer
from babyssa.synthetic.shift_report import BASELINE, SIMPLE, AttentionMap, ShiftResults
from babyssa.synthetic.tasks import CONTROL, TASKS, UNSHIFTED, WHOLE, Quantifier, Sample, Shift, Task, task_named
from babyssa.synthetic.training import EVALUATION_STREAM, predict
from babyssa.training.config import Optimisation
from babyssa.training.run_folder import flat, is_finished, plain

_RESAMPLES = 1000
# Least squares are fitted anew at every k of every sequence.
_BASELINE_SEQUENCES = 100
# An answer before the fourth number does not make a sequence wrong, as in the paper's own count.
_FIRST_OF_WHOLE = 3
# What does not make a model another one.
_NOT_THE_MODEL = (
    "out",
    "seed",
    "evaluate_every",
    *(f"optimisation.{key}" for key in ("log_every", "checkpoint_every", "resume_every", "report_to")),
)
_RUN = ["task", "data", "model", "variant", "settings", "seed"]


@dataclass(frozen=True)
class Run:
    """A trained model and what it was trained as."""

    folder: Path
    settings: SyntheticTraining
    task: Task
    model: nn.Module

    @property
    def variant(self) -> str:
        """What its scoring is called."""
        return variant_name(self.settings.variant, self.settings.scoring)

    def others(self) -> dict[str, object]:
        """All settings but the scoring that make it another model, by dotted key."""
        values = flat(plain(self.settings))
        return {
            key: value
            for key, value in values.items()
            if key not in (*_NOT_THE_MODEL, "variant") and not key.startswith("scoring.")
        }


def load_run(folder: Path) -> Run:
    """Load a run of ``babyssa train synthetic``.

    Raises
    ------
    DataError, ModelError, DamageError
        If the folder holds no finished run on a synthetic task, or one of its files has changed since.
    """
    folder = Path(folder)
    kind = read_settings(folder).get("kind")
    if kind != "synthetic":
        raise ModelError(
            f"not a run on a synthetic task but of kind '{kind}'",
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
    settings = SyntheticTraining.from_recipe(folder / CONFIG)
    return Run(folder, settings, task_named(settings.task, settings.answers), model.eval())


def measure_shifts(folders: Iterable[Path], shifts: Shifts | None = None) -> ShiftResults:
    """Measure trained models under every shift, all on the same sequences, with baselines beside them.

    Parameters
    ----------
    folders : iterable of Path
        Run folders of ``babyssa train synthetic``, of any tasks, variants, settings and seeds.
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
    tasks: dict[str, list[Run]] = {}
    for run in runs:
        tasks.setdefault(run.task.name, []).append(run)
    all_keys = {task: _keys(of_task) for task, of_task in tasks.items()}
    _check_lengths(runs, shifts)
    measured = _Measured()
    for task, of_task in tasks.items():
        # Every model has seen sequences as long as the shortest training sequences.
        length = min(run.settings.length for run in of_task)
        trained_on = dict.fromkeys(run.settings.data for run in of_task)
        for data in (shifts.data or trained_on) if isinstance(TASKS[task], Quantifier) else ("iid",):
            _measure(measured, of_task, [key | {"data": data} for key in all_keys[task]], length, data, shifts)
    table = pd.DataFrame(measured.runs)
    return ShiftResults(
        runs=table,
        positions=pd.DataFrame(measured.positions),
        models=_over_seeds(table),
        deviant_weights=pd.DataFrame(measured.weights, columns=[*_RUN, "layer", "head", "weight", "uniform"]),
        magnitudes=pd.DataFrame(measured.magnitudes),
        maps=measured.maps,
        provenance={
            "runs": [
                {**key, "folder": str(run.folder), "model_sha256": weights_sha256(run.model)}
                for task, of_task in tasks.items()
                for run, key in zip(of_task, all_keys[task], strict=True)
            ],
            "shifts": dataclasses.asdict(shifts),
            "baseline_sequences": _BASELINE_SEQUENCES,
            "versions": versions(),
        },
    )


@dataclass
class _Measured:
    """The rows of every table, as they are measured."""

    runs: list = dataclasses.field(default_factory=list)
    positions: list = dataclasses.field(default_factory=list)
    weights: list = dataclasses.field(default_factory=list)
    magnitudes: list = dataclasses.field(default_factory=list)
    maps: dict = dataclasses.field(default_factory=dict)


def _measure(
    into: _Measured, runs: Sequence[Run], keys: Sequence[dict], length: int, data: Data, shifts: Shifts
) -> None:
    """Measure the runs of one task on data drawn in one way; `keys` has the columns that name each run."""
    name = runs[0].task.name
    simple = baselines(TASKS[name], length, data)
    conditions = _shifts_of(TASKS[name], data, shifts)
    for shifted, shift in progress(conditions.items(), f"{name}, {data}: shifts", total=len(conditions)):
        samples = {}
        for task in dict.fromkeys([TASKS[name], *(run.task for run in runs)]):
            generator = np.random.default_rng([shifts.seed, EVALUATION_STREAM, 1])
            samples[task] = task.sample(generator, shifts.sequences, length, shift)
        fewer = samples[TASKS[name]].first(_BASELINE_SEQUENCES)
        predicted = [
            (key, samples[run.task], predict(run.model, run.task, samples[run.task]))
            for run, key in zip(runs, keys, strict=True)
        ]
        for baseline, fit in simple.items():
            values = (name, data, baseline, baseline, SIMPLE, 0)
            predicted.append((dict(zip(_RUN, values, strict=True)), fewer, fit(fewer)))
        for key, sample, predictions in predicted:
            values = TASKS[name].measure(predictions, sample) / TASKS[name].unit(shift)
            rows, by_k = _estimate(TASKS[name], sample, values)
            into.runs += [{**key, "shift": shifted, **row} for row in rows]
            into.positions += [{**key, "shift": shifted, **row} for row in by_k]
        for run, key in zip(runs, keys, strict=True):
            sample = samples[run.task]
            if shift == Shift(input_scale=shift.input_scale, data=data):
                rows = magnitudes(run.model, sample)
                into.magnitudes += [{**key, "scale": shift.input_scale, **row} for row in rows]
            if shift.deviant is not None and not shift.control:
                into.weights += [{**key, **row} for row in deviant_weights(run.model, run.task, sample)]
                shown = weights_of(run.model, sample.first(1))
                if shown is not None:
                    first = AttentionMap(sample.values[0], [layer[0] for layer in shown])
                    into.maps.setdefault((name, data, key["model"]), first)


def _shifts_of(task: Task, data: Data, chosen: Shifts) -> dict[str, Shift]:
    """The shifts of a task by name, data like those of training first."""
    shifts = {UNSHIFTED: Shift()}
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
    return {name: dataclasses.replace(shift, data=data) for name, shift in shifts.items()}


def _keys(runs: Sequence[Run]) -> list[dict[str, object]]:
    """The columns that name each run of one task: what tells it from the others is in its model's name.

    Raises
    ------
    DataError
        If two are of one model and seed.
    """
    others = [run.others() for run in runs]
    names = dict.fromkeys(key for own in others for key in own)
    differing = [key for key in names if any(own.get(key) != others[0].get(key) for own in others)]
    usual = flat(plain(SyntheticTraining(runs[0].task.name, Path(), optimisation=Optimisation(steps=1))))
    keys, seen = [], {}
    for run, own in zip(runs, others, strict=True):
        told = [key for key in differing if own.get(key) != usual.get(key)]
        settings = ", ".join(f"{_words(key)} {own.get(key)}" for key in told)
        model = ", ".join(filter(None, [run.variant, settings]))
        earlier = seen.setdefault((model, run.settings.seed), run)
        if earlier is not run:
            raise DataError(
                f"the same model and seed as {earlier.folder}", path=run.folder, remedy="leave one of the two out"
            )
        values = (run.task.name, run.settings.data, model, run.variant, settings, run.settings.seed)
        keys.append(dict(zip(_RUN, values, strict=True)))
    return keys


def _words(key: str) -> str:
    """A setting's dotted key as a reader says it: "curriculum start", "steps"."""
    return key.removeprefix("size.").removeprefix("optimisation.").replace(".", " ").replace("_", " ")


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


def _estimate(task: Task, sample: Sample, values: np.ndarray) -> tuple[list[dict], list[dict]]:
    """Each measure's mean over k, and the metric at each k, with their 95% bootstrap intervals over sequences.

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
    determined = by_k[:, known[known >= task.first_determined]]
    counts = (~np.isnan(determined)).sum(axis=1)
    overall = np.divide(np.nansum(determined, axis=1), counts, out=np.full(len(counts), np.nan), where=counts > 0)
    low, high = np.nanquantile(overall[1:], [0.025, 0.975])
    lows, highs = np.nanquantile(by_k[1:, known], [0.025, 0.975], axis=0)
    at_known = by_k[0, known]
    found = {"measure": task.metric, "value": overall[0], "low": low, "high": high, "last": at_known[-1]}
    rows = [{**found, "n": len(values)}]
    if isinstance(task, Quantifier):
        counted[:, :_FIRST_OF_WHOLE] = False
        whole = weights @ (values.astype(bool) | ~counted).all(axis=1) / len(values)
        low, high = np.quantile(whole[1:], [0.025, 0.975])
        rows.append({"measure": WHOLE, "value": whole[0], "low": low, "high": high, "n": len(values)})
    by_k = zip(known + 1, at_known, lows, highs, strict=True)
    return rows, [dict(zip(("k", "value", "low", "high"), row, strict=True)) for row in by_k]


def _over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds, and the difference to Softmax with the same seed and otherwise the same settings."""
    rows = []
    of_models = runs.groupby(["task", "data", "measure", "model", "settings", "shift"], sort=False)
    for (task, data, measure, model, settings, shift), of_model in of_models:
        same = (runs.task == task) & (runs.data == data) & (runs.measure == measure) & (runs["shift"] == shift)
        base = runs[same & (runs.settings == settings) & (runs.variant == BASELINE)].set_index("seed").value
        paired = of_model[of_model.seed.isin(base.index) & (of_model.variant != BASELINE)]
        differences = paired.value.to_numpy() - base.loc[paired.seed].to_numpy()
        low, high = _interval(of_model.value)
        difference_low, difference_high = _interval(differences)
        rows.append(
            {
                "task": task,
                "data": data,
                "measure": measure,
                "model": model,
                "settings": settings,
                "shift": shift,
                "seeds": len(of_model),
                "pairs": len(differences),
                "value": of_model.value.mean(),
                "sd": of_model.value.std(),
                "low": np.maximum(low, 0.0),
                "high": high if measure == TASKS["linear"].metric else np.minimum(high, 1.0),
                "last": of_model["last"].mean(),
                "difference": differences.mean() if len(differences) else np.nan,
                "difference_low": difference_low,
                "difference_high": difference_high,
            }
        )
    return pd.DataFrame(rows)


def _interval(values) -> tuple[float, float]:
    return t_interval(values) if len(values) > 1 else (np.nan, np.nan)
