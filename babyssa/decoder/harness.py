"""Zero-shot (or few-shot) accuracy by lm-evaluation-harness, through its own Python API.

Source of the tasks and their scoring: Gao et al., the EleutherAI Language Model Evaluation Harness. The
defaults are the tasks that Naim, Bhar, Bolte & Asher (arXiv 2508.14685) report.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import set_seed

from babyssa.comparison.cells import StoredCell
from babyssa.comparison.scalars import ScalarComparison, compare_scalars
from babyssa.console import quiet_transformers, say
from babyssa.decoder.harness_tasks import DEFAULT_TASKS, find_tasks, harness_version, unknown_task
from babyssa.display import Column, Shown, Table, percent
from babyssa.errors import ConfigError, DataError
from babyssa.files import check_overwrite, versions, write_json
from babyssa.models.loading import LoadedModel, as_loaded, evaluating
from babyssa.models.scores import choose_method
from babyssa.probing.accuracy import identity

if TYPE_CHECKING:
    import pandas as pd

RESULT = "harness.json"

_LOGGERS = ("lm_eval", "huggingface_hub", "datasets", "httpx")


@dataclass(frozen=True)
class TaskResult:
    """One task's metrics.

    Attributes
    ----------
    name : str
        The task.
    n : int
        Examples scored.
    fewshot : int
        Solved examples in each prompt.
    metrics : dict of str to float
        Such as acc, acc_norm or f1, in 0..1.
    standard_errors : dict of str to float
        Of those metrics for which the harness gives one.
    """

    name: str
    n: int
    fewshot: int
    metrics: dict[str, float]
    standard_errors: dict[str, float]


@dataclass(frozen=True)
class HarnessResult(Shown):
    """A model's metrics on some tasks, and the versions they were measured with.

    Variant and seed are those of its training; the folder's name and None if it does not say.
    """

    model: str
    variant: str
    seed: int | None
    tasks: tuple[TaskResult, ...]
    versions: dict[str, str]

    def summary(self) -> dict[str, Any]:
        """The content of harness.json."""
        return asdict(self)

    def values(self) -> dict[str, float]:
        """Every metric by its task and name."""
        return {f"{task.name} {metric}": v for task in self.tasks for metric, v in task.metrics.items()}

    def tables(self) -> Iterator[Table]:
        columns = (
            Column("task"),
            Column("metric"),
            Column("examples", ","),
            Column("shots"),
            Column("value", percent, "%"),
            Column("standard_error", percent, "standard error"),
        )
        rows = [
            (task.name, metric, task.n, task.fewshot, value, task.standard_errors.get(metric))
            for task in self.tasks
            for metric, value in task.metrics.items()
        ]
        yield Table(columns, rows, f"{self.model}, lm-evaluation-harness {self.versions['lm_eval']}", keys=2)


@dataclass(frozen=True)
class HarnessResults(Shown):
    """Several models' metrics, compared over the seeds of each variant.

    Attributes
    ----------
    models : tuple of HarnessResult
        What each model scored.
    """

    models: tuple[HarnessResult, ...]

    @cached_property
    def comparison(self) -> ScalarComparison:
        """Means over seeds and differences to Softmax, or to the first variant, with 95% intervals."""
        variants = list(dict.fromkeys(result.variant for result in self.models))
        variants.sort(key=lambda variant: variant != "softmax")
        cells = [
            StoredCell(
                Path(result.model),
                {
                    "variant": result.variant,
                    "seed": result.seed,
                    "measures": {"harness": {"unit": "task and metric", "values": result.values()}},
                },
                {},
            )
            for result in self.models
        ]
        return compare_scalars(cells, "harness", variants, (), level=0.95)

    def tables(self) -> Iterator[Table]:
        yield from self.comparison.tables()

    def to_frame(self) -> pd.DataFrame:
        """One row per task, metric and model."""
        import pandas as pd

        frames = [result.to_frame() for result in self.models]
        for frame, result in zip(frames, self.models, strict=True):
            frame.insert(0, "model", result.model)
            frame.insert(1, "variant", result.variant)
            frame.insert(2, "seed", result.seed)
        return pd.concat(frames, ignore_index=True)


def evaluate(model: Any, tasks: Iterable[str] = DEFAULT_TASKS, **options: Any) -> HarnessResult:
    """Evaluate one model; takes the options of :func:`evaluate_models`."""
    (result,) = evaluate_models([model], tasks, **options)
    return result


def evaluate_models(
    models: Sequence[Any],
    tasks: Iterable[str] = DEFAULT_TASKS,
    *,
    include_path: str | Path | None = None,
    limit: int | None = None,
    fewshot: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    method: str | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    overwrite: bool = False,
) -> list[HarnessResult]:
    """Evaluate models on tasks of the harness; :func:`babyssa.evaluate` explains the parameters."""
    tasks = tuple(dict.fromkeys(tasks))
    for name, value, least in (("limit", limit, 1), ("fewshot", fewshot, 0), ("batch-size", batch_size, 1)):
        if value is not None and value < least:
            raise ConfigError(f"{name} is {value}", remedy=f"it is at least {least}")
    find_tasks(tasks, include_path)
    known = {**versions(), "lm_eval": harness_version()}
    identities, masked = _check_models(models, method, device)
    names = ["-".join(map(str, filter(lambda part: part is not None, own))) for own in identities]
    folders = [out and Path(out) / (name if len(models) > 1 else "") for name in names]
    for folder in filter(None, folders):
        check_overwrite(folder, [RESULT], overwrite)
    with _quiet():
        manager = _manager_with(tasks, include_path)
        loaded_tasks: dict[str, dict[str, Any]] = {}
        for task in tasks:
            for kind, found in _load(manager, task).items():
                loaded_tasks.setdefault(kind, {}).update(found)
    for name, task in loaded_tasks["tasks"].items():
        if masked and task.OUTPUT_TYPE == "generate_until":
            what = f"task '{name}' asks for generated text, and {masked[0]} is a masked model"
            raise ConfigError(what, remedy="choose tasks of multiple choice, or a causal model")
    results = []
    for model, own, folder in zip(models, identities, folders, strict=True):
        loaded = as_loaded(model, device=device)
        for task in loaded_tasks["tasks"].values():
            _set_fewshot(task, fewshot, seed)
        set_seed(seed)
        say(f"scoring {', '.join(tasks)}" + (f" with {loaded.name}" if len(models) > 1 else ""))
        with _quiet(), evaluating(loaded.model), _bars_on_a_terminal_only():
            found = _evaluate(
                fewshot, lm=_as_harness_model(loaded, method, batch_size), task_dict=loaded_tasks, limit=limit
            )
        results.append(HarnessResult(loaded.name, *own, tuple(_task_results(found)), known))
        if folder is not None:
            write_json(folder / RESULT, results[-1].summary())
    return results


def _check_models(
    models: Sequence[Any], method: str | None, device: str | None
) -> tuple[list[tuple[str, int | None]], list[str]]:
    """Variant and seed of each model, and the names of masked ones; raise unless all can be told apart."""
    if not models:
        raise ConfigError("no model given", remedy="name a model folder or hub id")
    seen: dict[tuple[str, int | None], str] = {}
    masked = []
    for model in models:
        loaded = as_loaded(model, device=device)
        if choose_method(loaded, method, None)[0] == "holistic":
            raise ConfigError("holistic scores whole sentences only", remedy="use pll or pll-word-l2r")
        if loaded.kind == "masked":
            masked.append(loaded.name)
        own = identity(loaded)
        if own in seen:
            what = f"{loaded.name} is of variant {own[0]} and seed {own[1]}, as {seen[own]} is"
            raise ConfigError(what, remedy="leave one of them out")
        seen[own] = loaded.name
    return list(seen), masked


def _set_fewshot(task: Any, fewshot: int | None, seed: int) -> None:
    """The number of solved examples: as given, but where a task's own is 0, which its prompt rests on."""
    own = task.get_config("num_fewshot")
    if own != 0:
        task.set_config(key="num_fewshot", value=(own or 0) if fewshot is None else fewshot)
    task.set_fewshot_seed(seed=seed)


def _evaluate(fewshot: int | None, **options: Any) -> dict[str, Any]:
    # Not simple_evaluate: it asks git about the folder that one happens to be in.
    from lm_eval import evaluate

    try:
        return evaluate(log_samples=False, fewshot_as_multiturn=True, **options)
    except ValueError as error:
        if "population" not in str(error):
            raise
        raise ConfigError(
            f"fewshot is {fewshot}, more than the examples that a task has", remedy="lower it"
        ) from error


def _manager_with(tasks: Sequence[str], include_path: str | Path | None):
    """A task manager that knows all of `tasks`: of few folders where possible, as the full list is slow."""
    from lm_eval.tasks import TaskManager

    own = None
    if include_path is not None:
        try:
            own = TaskManager(include_path=str(include_path), include_defaults=False)
        except Exception as error:  # a broken YAML file can raise anything
            said = " ".join(str(error).split())[:300]
            raise DataError(f"its tasks cannot be read: {said}", path=include_path) from error
        if set(tasks) <= set(own.all_tasks):
            return own
    folders = [*find_tasks(tuple(tasks), include_path), *([] if own is None else [include_path])]
    few = TaskManager(include_path=folders, include_defaults=False)
    if set(tasks) <= set(few.all_subtasks):  # the tasks of a group may be in other folders
        return few
    manager = _packaged_tasks()
    known = {*manager.all_tasks, *(own.all_tasks if own else ())}
    for task in tasks:
        if task not in known:
            raise unknown_task(task, known)
    if own is None or not set(tasks) & set(own.all_tasks):
        return manager
    return TaskManager(include_path=str(include_path))


@cache
def _packaged_tasks():
    """The harness's own tasks."""
    from lm_eval.tasks import TaskManager

    say("reading the harness's list of tasks")
    return TaskManager()


def _load(manager, task: str) -> dict[str, dict[str, Any]]:
    """A task, or the tasks of a group, with their data; DataError with one line if that fails."""
    say(f"loading task {task}")
    try:
        return manager.load([task])
    except Exception as error:  # a task's data, templates and Python code can raise anything
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise DataError(
            f"task '{task}' cannot be loaded: {type(error).__name__}: {' '.join(lines)[:300]}",
            remedy="check that its local files exist, or get its data from the hub with a network",
        ) from error


def _as_harness_model(loaded: LoadedModel, method: str | None, batch_size: int | None):
    if loaded.kind == "masked":
        from babyssa.decoder.harness_model import MaskedModel

        return MaskedModel(loaded, method or "pll", batch_size)
    from lm_eval.models.huggingface import HFLM

    return HFLM(
        pretrained=loaded.model,
        tokenizer=loaded.tokenizer,
        backend="causal",
        batch_size=batch_size or 16,
        max_length=loaded.max_tokens,
    )


def _task_results(found: dict[str, Any]) -> Iterator[TaskResult]:
    """The harness's results, metric by metric; its keys are ``metric,filter`` and ``metric_stderr,filter``."""
    for name, values in found["results"].items():
        metrics, errors = {}, {}
        for key, value in values.items():
            metric, _, kind = key.partition(",")
            if isinstance(value, bool) or not isinstance(value, int | float) or not kind:
                continue
            label = metric if kind == "none" else f"{metric} ({kind})"
            if "_stderr" in metric:
                errors[label.replace("_stderr", "")] = float(value)
            else:
                metrics[label] = float(value)
        if metrics:
            samples = found.get("n-samples", {}).get(name, {})
            fewshot = found.get("n-shot", {}).get(name, 0)
            yield TaskResult(name, int(samples.get("effective", 0)), int(fewshot or 0), metrics, errors)


def _bars_on_a_terminal_only() -> AbstractContextManager:
    """Keep the harness's progress bars, which cannot be turned off, out of files and pipes."""
    return nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the harness's and the hub's log off stderr; errors are raised."""
    import datasets

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    bars = datasets.utils.logging.is_progress_bar_enabled()
    with quiet_transformers():
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        datasets.disable_progress_bars()
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if bars:
                datasets.enable_progress_bars()
