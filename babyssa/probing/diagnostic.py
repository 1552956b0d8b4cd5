"""Diagnostic classifiers: can a linear classifier read a grammatical feature off the hidden states of a layer?

The one task is ``subject-number``: in "the dogs near the tree ___ big .", read the number of the subject's head
("dogs") from the hidden state of the last token before the verb, which belongs to a noun whose own number is
crossed with that of the head. The verb itself is hidden: a masked model sees the mask in its place, a causal model
only what comes before it.

A classifier may learn words rather than the feature (Hewitt & Liang 2019, arXiv 1909.03368), so two numbers are
reported. ``accuracy`` is on sentences whose head nouns occur in no training sentence, in either number.
``selectivity``, where training and test share their nouns, is the accuracy on the task minus the accuracy on a
control task: the same classifier and states, but labels drawn at random for each form of each head noun, which can
only be learned word by word.

The embeddings (layer 0) know only the token before the gap, so they should be at chance.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from babyssa.checks import Seed, check
from babyssa.console import progress
from babyssa.display import Column, Shown, Table, percent
from babyssa.errors import ConfigError, ModelError, nearest
from babyssa.files import atomic_write, versions, write_json
from babyssa.language.lexicon import Lexicon, load_lexicon
from babyssa.models.encoding import encode
from babyssa.models.loading import LoadedModel, as_loaded, evaluating, weights_sha256
from babyssa.probing.accuracy import identity

if TYPE_CHECKING:
    import pandas as pd

RESULT, TABLE = "diagnostic.json", "diagnostic.csv"

_TOKENS_PER_BATCH = 4096


@dataclass(frozen=True)
class Example:
    """A sentence with its verb cut out, and the label to be read from the token before the gap.

    Attributes
    ----------
    before, verb, after : str
        The sentence in three parts; `verb` is what is cut out.
    label : int
        The class (0 singular, 1 plural).
    word : str
        The form that carries the feature; control labels are drawn per form.
    item : str
        The lexical item of `word`: never in training and test at once where unseen words are tested.
    frame : int
        The number of the item's frame: the fold that holds it out where words are shared.
    """

    before: str
    verb: str
    after: str
    label: int
    word: str
    item: str
    frame: int


@dataclass(frozen=True)
class LayerResult:
    """One layer (0 is the embeddings): means over folds, with 95% t intervals over folds.

    ``selectivity`` is ``accuracy_seen_words`` minus ``control_accuracy``.
    """

    layer: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    accuracy_seen_words: float
    control_accuracy: float
    selectivity: float
    selectivity_low: float
    selectivity_high: float


@dataclass(frozen=True)
class DiagnosticResult(Shown):
    """What a linear classifier reads from each layer of a model; accuracies in 0..1."""

    model: str
    variant: str
    model_seed: int | None
    model_sha256: str
    task: str
    n_sentences: int
    n_items: int
    folds: int
    seed: int
    majority_accuracy: float
    layers: tuple[LayerResult, ...]
    versions: dict[str, str]

    def tables(self) -> Iterator[Table]:
        columns = (
            Column("layer", lambda layer: "embeddings" if layer == 0 else str(layer), right=False),
            Column("accuracy", percent, "unseen nouns %"),
            Column("accuracy_interval", right=True, heading="95% over folds"),
            Column("accuracy_seen_words", percent, "seen nouns %"),
            Column("control_accuracy", percent, "control %"),
            Column("selectivity", percent),
            Column("selectivity_interval", right=True, heading="95% over folds"),
        )
        rows = [
            (
                layer.layer,
                layer.accuracy,
                f"{percent(layer.accuracy_low)}-{percent(layer.accuracy_high)}",
                layer.accuracy_seen_words,
                layer.control_accuracy,
                layer.selectivity,
                f"{percent(layer.selectivity_low)} to {percent(layer.selectivity_high)}",
            )
            for layer in self.layers
        ]
        title = (
            f"{self.model}, {self.task}: {self.n_sentences} sentences, {self.n_items} nouns, {self.folds} folds"
        )
        note = f"majority baseline {percent(self.majority_accuracy)} %"
        yield Table(columns, rows, title, (note,))

    def to_frame(self) -> pd.DataFrame:
        """One row per layer, as in diagnostic.csv."""
        import pandas as pd

        return pd.DataFrame(self.layers)


def subject_number(lexicon: Lexicon, frames: int, rng: np.random.Generator) -> list[Example]:
    """Number of the subject's head across a prepositional phrase.

    Every head noun gets `frames` frames (preposition, second noun, adjective), and every frame occurs with all
    four combinations of the two nouns' numbers, so that neither number predicts the other.
    """

    def choose(options: Sequence[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    places = [n for n in lexicon.nouns if n.distinct_plural and lexicon.prepositions_of(n)]
    examples = []
    for head in lexicon.nouns:
        if not head.distinct_plural or not lexicon.adjectives_of(head):
            continue
        for frame in range(frames):
            place = choose([p for p in places if p != head])
            preposition = choose(lexicon.prepositions_of(place)).word
            adjective = choose(lexicon.adjectives_of(head)).word
            for label, number in enumerate(("singular", "plural")):
                for other in ("singular", "plural"):
                    word = head.form(number)
                    before = f"the {word} {preposition} the {place.form(other)}"
                    examples.append(Example(before, "is", f"{adjective} .", label, word, head.singular, frame))
    return examples


DIAGNOSTIC_TASKS: dict[str, Callable[[Lexicon, int, np.random.Generator], list[Example]]] = {
    "subject-number": subject_number
}


def check_diagnosis(task: str, folds: int, seed: int) -> None:
    """Raise ConfigError if the task is unknown or a number is out of its domain."""
    if task not in DIAGNOSTIC_TASKS:
        raise ConfigError(f"unknown task '{task}'", remedy=nearest(task, DIAGNOSTIC_TASKS))
    check("seed", seed, Seed)
    nouns = len({e.item for e in DIAGNOSTIC_TASKS[task](load_lexicon(), 1, np.random.default_rng(seed))})
    if not 2 <= folds <= nouns // 2:
        raise ConfigError(f"folds is {folds}", remedy=f"it is from 2 to {nouns // 2}, half of the nouns")


def diagnose(model: Any, *, task: str = "subject-number", folds: int = 5, seed: int = 0) -> DiagnosticResult:
    """Train and test a logistic regression per layer, with controls; see :func:`babyssa.diagnose`."""
    check_diagnosis(task, folds, seed)
    rng = np.random.default_rng(seed)
    loaded = as_loaded(model)
    examples = _without_length_cues(loaded, DIAGNOSTIC_TASKS[task](load_lexicon(), folds, rng), folds)
    unseen, seen = _folds(examples, folds, rng)
    control = _control_labels(examples, rng)
    labels = np.array([example.label for example in examples])
    variant, model_seed = identity(loaded)
    states = hidden_states(loaded, examples)
    layers = tuple(
        _judge_layer(layer, states[:, layer], labels, control, unseen, seen)
        for layer in progress(range(states.shape[1]), "diagnosing")
    )
    return DiagnosticResult(
        model=loaded.name,
        variant=variant,
        model_seed=model_seed,
        model_sha256=weights_sha256(loaded.model),
        task=task,
        n_sentences=len(examples),
        n_items=len({example.item for example in examples}),
        folds=folds,
        seed=seed,
        majority_accuracy=float(np.mean(_majority(labels, unseen))),
        layers=layers,
        versions=versions(),
    )


def hidden_states(loaded: LoadedModel, examples: Sequence[Example]) -> np.ndarray:
    """Hidden states ``(examples, layers + 1, hidden)``, float32, of the last token before each example's gap.

    Raises
    ------
    ModelError
        If the model gives no hidden states, or NaN or infinity.
    """
    inputs = [_input(loaded, example) for example in examples]
    by_length: dict[int, list[int]] = {}
    for index, (ids, _) in enumerate(inputs):
        by_length.setdefault(len(ids), []).append(index)
    states: np.ndarray | None = None
    with evaluating(loaded.model):
        for length, indices in sorted(by_length.items()):
            size = max(1, _TOKENS_PER_BATCH // length)
            for batch in (indices[i : i + size] for i in range(0, len(indices), size)):
                ids = torch.tensor([inputs[i][0] for i in batch], device=loaded.device)
                position = torch.tensor([inputs[i][1] for i in batch], device=loaded.device)
                output = loaded.model.base_model(
                    input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True
                )
                if getattr(output, "hidden_states", None) is None:
                    raise ModelError("the model gives no hidden states", path=loaded.name)
                rows = torch.arange(len(batch), device=loaded.device)
                at_gap = torch.stack([layer[rows, position].float() for layer in output.hidden_states], dim=1)
                if states is None:
                    states = np.empty((len(examples), *at_gap.shape[1:]), dtype=np.float32)
                states[batch] = at_gap.cpu().numpy()
    if not np.isfinite(states).all():
        raise ModelError("a hidden state is NaN or infinite", path=loaded.name, remedy="the weights are broken")
    return states


def _input(loaded: LoadedModel, example: Example) -> tuple[list[int], int]:
    """Token ids with the verb masked (masked models) or cut off with all that follows it (causal models), and the
    position of the token before it."""
    before = encode(loaded, example.before)
    last = before.inside[-1]
    if loaded.kind == "causal":
        return list(before.ids), last
    with_verb = encode(loaded, f"{example.before} {example.verb}")
    whole = encode(loaded, f"{example.before} {example.verb} {example.after}")
    after = with_verb.inside[-1] + 1
    if whole.ids[: last + 1] != before.ids[: last + 1] or whole.ids[:after] != with_verb.ids[:after]:
        raise ModelError("the tokenizer merges neighbouring words", path=loaded.name)
    return [*whole.ids[: last + 1], loaded.tokenizer.mask_token_id, *whole.ids[after:]], last


def _without_length_cues(loaded: LoadedModel, examples: list[Example], folds: int) -> list[Example]:
    """Keep the items whose forms have the same number of tokens.

    Where plurals are longer ("duck", "duck" "s"), the position of the gap gives the number away, and even the
    embeddings, which have seen no head noun, would seem to know it.
    """
    lengths: dict[str, set[int]] = {}
    for item, word in dict.fromkeys((example.item, example.word) for example in examples):
        lengths.setdefault(item, set()).add(len(encode(loaded, f"the {word}").ids))
    kept = [example for example in examples if len(lengths[example.item]) == 1]
    items = len({example.item for example in kept})
    if items < 2 * folds:
        raise ModelError(
            f"only {items} of {len(lengths)} nouns have as many tokens in the singular as in the plural",
            path=loaded.name,
            remedy="use a model with a larger vocabulary, or fewer folds",
        )
    return kept


def _folds(
    examples: Sequence[Example], folds: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Test sets (boolean, per example) that hold out lexical items, and test sets that hold out frames."""
    items = list(dict.fromkeys(example.item for example in examples))
    fold_of = dict(zip(items, rng.permutation(np.arange(len(items)) % folds).tolist(), strict=True))
    by_item = np.array([fold_of[example.item] for example in examples])
    by_frame = np.array([example.frame for example in examples])
    return [by_item == fold for fold in range(folds)], [by_frame == fold for fold in range(folds)]


def _control_labels(examples: Sequence[Example], rng: np.random.Generator) -> np.ndarray:
    """A random label per word form; each label for half of the forms."""
    forms = list(dict.fromkeys(example.word for example in examples))
    label_of = dict(zip(forms, rng.permutation(np.arange(len(forms)) % 2).tolist(), strict=True))
    return np.array([label_of[example.word] for example in examples])


def _judge_layer(
    layer: int,
    states: np.ndarray,
    labels: np.ndarray,
    control: np.ndarray,
    unseen: list[np.ndarray],
    seen: list[np.ndarray],
) -> LayerResult:
    accuracy = _accuracies(states, labels, unseen)
    shared = _accuracies(states, labels, seen)
    controlled = _accuracies(states, control, seen)
    selectivity = shared - controlled
    low, high = _t_interval(accuracy)
    selectivity_low, selectivity_high = _t_interval(selectivity)
    return LayerResult(
        layer=layer,
        accuracy=float(accuracy.mean()),
        accuracy_low=max(0.0, float(low)),
        accuracy_high=min(1.0, float(high)),
        accuracy_seen_words=float(shared.mean()),
        control_accuracy=float(controlled.mean()),
        selectivity=float(selectivity.mean()),
        selectivity_low=float(selectivity_low),
        selectivity_high=float(selectivity_high),
    )


def _accuracies(states: np.ndarray, labels: np.ndarray, tests: list[np.ndarray]) -> np.ndarray:
    """Accuracy of a logistic regression on each test set, trained on all the rest."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    accuracies = []
    for test in tests:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        classifier.fit(states[~test], labels[~test])
        accuracies.append(classifier.score(states[test], labels[test]))
    return np.array(accuracies)


def _majority(labels: np.ndarray, tests: list[np.ndarray]) -> list[float]:
    """Accuracy of always answering with the training set's most frequent label."""
    return [float((labels[test] == np.bincount(labels[~test]).argmax()).mean()) for test in tests]


def write_result(result: DiagnosticResult, out: Path) -> None:
    """Write diagnostic.json and diagnostic.csv."""
    (out / RESULT).unlink(missing_ok=True)
    with atomic_write(out / TABLE) as file:
        writer = csv.DictWriter(file, [field.name for field in fields(LayerResult)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(layer) for layer in result.layers)
    write_json(out / RESULT, asdict(result))


def _t_interval(values: np.ndarray) -> tuple[float, float]:
    """Student's 95% interval of the mean over folds."""
    from scipy.stats import sem, t

    half = t.ppf(0.975, len(values) - 1) * sem(values)
    return values.mean() - half, values.mean() + half
