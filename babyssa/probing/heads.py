"""What every attention head of a model has learned for its scoring: n and b, or another scoring's numbers.

Read from the files of a checkpoint, so that it works for any model of this package, whatever it reads.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from babyssa.attention import Mixed, Scoring, SoftmaxConfig, build_scoring, scorings
from babyssa.attention.adapter import attention_layers, scoring_of
from babyssa.attention.registry import scoring_from_dict
from babyssa.display import Column, Shown, Table
from babyssa.errors import ConfigError, ModelError
from babyssa.figures import COLOURS, LINES, literal, save_figure, styled
from babyssa.files import atomic_write, check_checksums
from babyssa.models.loading import ModelSource, as_loaded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CSV, FIGURE = "numbers.csv", "numbers.png"
FILES = (CSV, FIGURE)
_LOG, _CHECKPOINTS = "log.jsonl", "checkpoints"
# What the configs of transformers models call their layers and heads.
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")


@dataclass(frozen=True)
class HeadNumbers:
    """The numbers of one head's scoring after one step of training.

    Attributes
    ----------
    step : int or None
        None: those of the model itself.
    layer, head : int
        Counted from 1.
    scoring : str
        Name of its scoring function.
    numbers : dict of str to float
        Learned or fixed, in their domain.
    """

    step: int | None
    layer: int
    head: int
    scoring: str
    numbers: dict[str, float]


@dataclass(frozen=True)
class LearnedNumbers(Shown):
    """The numbers of every head of a model, and what they were along its training.

    Attributes
    ----------
    model : str
        Folder or hub id.
    heads : tuple of HeadNumbers
        Those of the model, layer by layer.
    history : tuple of HeadNumbers
        The learned ones after each step that the log or a checkpoint of the run tells of.
    """

    model: str
    heads: tuple[HeadNumbers, ...]
    history: tuple[HeadNumbers, ...]

    @property
    def names(self) -> list[str]:
        """The names of all numbers, n before b."""
        return sorted({name for head in self.heads for name in head.numbers}, reverse=True)

    def tables(self) -> Iterator[Table]:
        columns = (Column("layer"), Column("head"), Column("scoring"))
        numbers = tuple(Column(name, ".4f", right=True) for name in self.names)
        rows = [
            (head.layer, head.head, head.scoring, *(head.numbers.get(name) for name in self.names))
            for head in self.heads
        ]
        layers = len({head.layer for head in self.heads})
        title = f"{self.model}: {len(self.heads)} heads in {layers} layer{'s' if layers > 1 else ''}"
        steps = sorted({head.step for head in self.history})
        notes = [] if numbers else ["Their scoring has no numbers."]
        if steps:
            at = f"steps {steps[0]} to {steps[-1]}" if len(steps) > 1 else f"step {steps[0]}"
            notes.append(
                f"The run's log and checkpoints have them at {at} ({len(steps)} in all); --out draws them."
            )
        yield Table((*columns, *numbers), rows, title, notes, keys=2)

    def summary(self) -> dict[str, Any]:
        """All as plain values."""
        rows = [vars(head) for head in (*self.heads, *self.history)]
        return {"model": self.model, "heads": rows[: len(self.heads)], "history": rows[len(self.heads) :]}


def scoring_layers(model: Any) -> list[Scoring]:
    """The scoring of each attention layer, in order; a stock model's is Softmax.

    Parameters
    ----------
    model : str, path-like, ModelSource, LoadedModel, (model, tokenizer) or nn.Module
        A folder in save_pretrained format, of any model; a hub id or a model in memory.

    Raises
    ------
    ModelError
        If the folder holds no model, or its config does not tell how many layers and heads there are.
    """
    if not isinstance(model, (str, Path)) or not Path(model).is_dir():
        return _of_module(model if isinstance(model, nn.Module) else as_loaded(model).model)
    folder = Path(model)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"holds no model: {error}", path=folder, remedy="pass a run or model folder") from None
    check_checksums(folder)
    layers, heads = (next((config[k] for k in names if k in config), None) for names in (_LAYERS, _HEADS))
    if layers is None or heads is None:
        raise ModelError("its config.json does not tell how many layers and heads it has", path=folder)
    if config.get("blocks") == "feed-forward":
        return []
    stated = config.get("attention_scoring")
    scoring = SoftmaxConfig() if stated is None else scoring_from_dict(stated)
    states = list(_states(folder))
    built = [build_scoring(scoring, heads) for _ in range(layers)]
    if not built or not list(built[0].parameters()):
        return built
    if len(states) != (1 if built[0].shared else layers):
        what = f"holds the numbers of {len(states)} scorings, and has {layers} layers"
        raise ModelError(what, path=folder, remedy="save it again")
    for number, module in enumerate(built):
        module.load_state_dict(states[0 if module.shared else number])
    return built


def _of_module(model: nn.Module) -> list[Scoring]:
    layers = attention_layers(model)
    if scorings(model):
        return [scoring_of(layer) for layer in layers]
    heads = next((getattr(model.config, name) for name in _HEADS if hasattr(model.config, name)), 1)
    return [build_scoring(SoftmaxConfig(), heads) for _ in layers]


def _states(folder: Path) -> Iterator[dict[str, Tensor]]:
    """The parameters of each scoring module in a folder's weights, layer by layer."""
    from safetensors import safe_open

    found: dict[str, dict[str, Tensor]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                where, inside, parameter = name.partition(".scoring.")
                if inside:
                    found.setdefault(where, {})[parameter] = file.get_tensor(name)
    return (found[where] for where in sorted(found, key=_in_order))


def _in_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts ``h.2`` before ``h.10``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def learned_numbers(
    model: Any, *, layers: Iterable[int] | None = None, heads: Iterable[int] | None = None
) -> LearnedNumbers:
    """The numbers of every head of a model; of a run folder, also along its training.

    Parameters
    ----------
    model : str, path-like, LoadedModel, (model, tokenizer) or nn.Module
        As :func:`scoring_layers`.
    layers, heads : iterable of int, optional
        Only these, counted from 1.

    Raises
    ------
    ConfigError
        If there is no such layer or head.
    ModelError
        As :func:`scoring_layers`, or if the model has no attention.
    """
    if isinstance(model, ModelSource) and model.revision is None and Path(model.name).is_dir():
        # What is read from files runs no code.
        model = model.name
    modules = scoring_layers(model)
    in_files = isinstance(model, (str, Path))
    name = str(model) if in_files or isinstance(model, ModelSource) else type(model).__name__
    if not modules:
        raise ModelError("has no attention, so no head to show", path=name)
    now, history = list(_now(modules)), _history(Path(model), modules) if in_files else ()
    check_places(layers, heads, ((at.layer, at.head) for at in now))

    def chosen(all_heads: Iterable[HeadNumbers]) -> tuple[HeadNumbers, ...]:
        wanted = (at for at in all_heads if layers is None or at.layer in layers)
        return tuple(at for at in wanted if heads is None or at.head in heads)

    return LearnedNumbers(name, chosen(now), chosen(history))


def _now(layers: list[Scoring], step: int | None = None) -> Iterator[HeadNumbers]:
    for layer, module in enumerate(layers, start=1):
        for head in range(module.heads):
            yield HeadNumbers(step, layer, head + 1, *module.describe_head(head))


def _history(folder: Path, layers: list[Scoring]) -> Iterator[HeadNumbers]:
    """What log.jsonl says of the learned numbers, and for steps that it leaves out, the checkpoints."""
    if not any(module.learned() for module in layers):
        return
    steps: dict[int, list[HeadNumbers]] = {}
    for path in folder.glob(f"{_CHECKPOINTS}/step-*"):
        step = int(path.name.removeprefix("step-"))
        steps[step] = [_only_learned(numbers, layers) for numbers in _now(scoring_layers(path), step)]
    log = folder / _LOG
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    for line in lines:
        record = json.loads(line)
        if "scoring" in record:
            steps[record["step"]] = list(_logged(record["step"], record["scoring"], layers))
    for step in sorted(steps):
        yield from steps[step]


def _logged(step: int, record: dict[str, dict[str, list[float]]], layers: list[Scoring]) -> Iterator[HeadNumbers]:
    values = [record[name] for name in sorted(record, key=_in_order)]
    for layer, module in enumerate(layers, start=1):
        found = values[0 if module.shared else layer - 1]
        for head in range(module.heads):
            group, within = module.place(head) if isinstance(module, Mixed) else (None, head)
            prefix = "" if group is None else f"{group}."
            numbers = {
                key.removeprefix(prefix): value[within % len(value)]
                for key, value in found.items()
                if key.startswith(prefix)
            }
            yield HeadNumbers(step, layer, head + 1, module.describe_head(head)[0], numbers)


def _only_learned(head: HeadNumbers, layers: list[Scoring]) -> HeadNumbers:
    module, at = layers[head.layer - 1], head.head - 1
    if isinstance(module, Mixed):
        group, at = module.place(at)
        module = module.groups[group]
    numbers = {name: value for name, value in head.numbers.items() if name in module.learned()}
    return HeadNumbers(head.step, head.layer, head.head, head.scoring, numbers)


def check_places(
    layers: Iterable[int] | None, heads: Iterable[int] | None, known: Iterable[tuple[int, int]]
) -> None:
    """Raise ConfigError unless the layers and heads chosen are among the (layer, head) that there are."""
    known = list(known)
    for what, place, chosen in (("layer", 0, layers), ("head", 1, heads)):
        there = sorted({at[place] for at in known})
        for number in chosen or ():
            if number not in there:
                raise ConfigError(f"there is no {what} {number}", remedy=f"{what}s count from 1 to {there[-1]}")


def write_numbers(found: LearnedNumbers, out: Path) -> None:
    """Write numbers.csv (every number after every known step) and numbers.png (the learned ones over training)."""
    with atomic_write(out / CSV) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", "layer", "head", "scoring", "number", "value"])
        for at in (*found.history, *found.heads):
            step = "model" if at.step is None else at.step
            writer.writerows([step, at.layer, at.head, at.scoring, *number] for number in at.numbers.items())
    if found.history:
        save_figure(draw_history(found), out / FIGURE, f"{found.model}: {', '.join(found.names)} of each head")


@styled
def draw_history(found: LearnedNumbers) -> Figure:
    """Draw each learned number of every head over training: a row of panels per number, a column per layer.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib.figure import Figure

    names = [name for name in found.names if any(name in head.numbers for head in found.history)]
    layers = sorted({head.layer for head in found.history})
    figure = Figure(figsize=(1.2 + 1.5 * len(layers), 0.9 + 1.8 * len(names)))
    panels = figure.subplots(len(names), len(layers), squeeze=False, sharex=True, sharey="row")
    lines: dict[tuple[str, int, int], list[tuple[int, float]]] = {}
    for at in found.history:
        for name, value in at.numbers.items():
            lines.setdefault((name, at.layer, at.head), []).append((at.step, value))
    for (name, layer, head), points in lines.items():
        axes = panels[names.index(name)][layers.index(layer)]
        dashes = LINES[(head - 1) // len(COLOURS) % len(LINES)]
        style = {"color": COLOURS[(head - 1) % len(COLOURS)], "linestyle": dashes}
        marker = "o" if len(points) == 1 else ""
        axes.plot(*zip(*points, strict=True), marker=marker, linewidth=1.2, label=f"head {head}", **style)
    for name, row in zip(names, panels, strict=True):
        row[0].set_ylabel(name)
        for axes in row:
            axes.grid(True)
    for layer, axes in zip(layers, panels[0], strict=True):
        axes.set_title(f"layer {layer}", fontsize=9)
    figure.supxlabel("step", fontsize=9)
    longest = max((axes.get_legend_handles_labels() for axes in panels.flat), key=lambda pair: len(pair[0]))
    figure.legend(
        *longest,
        title=literal(found.model),
        loc="outside upper center",
        ncols=min(2 * len(layers), len(longest[0])),
        fontsize=8,
        title_fontsize=9,
    )
    return figure
