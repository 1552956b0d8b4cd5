"""The model card of a run: what it is, how to load it, how it was trained, what it learned, how it was probed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from babyssa import __version__
from babyssa.attention import scoring_parameters
from babyssa.comparison.results import StoredResult
from babyssa.comparison.statistics import t_interval
from babyssa.display import percent
from babyssa.models.loading import LoadedModel
from babyssa.models.run_config import CONFIG, read_identity, read_settings
from babyssa.sharing.export import loading_code

# What config.yaml says of the training, by its dotted name, and what the card calls it.
_RECIPE = {
    "facts.training_sentences": "sentences",
    "facts.training_tokens": "tokens of the corpus",
    "order": "order",
    "masking.probability": "masked tokens",
    "masking.patterns": "mask patterns of a sentence",
    "optimisation.batch_size": "batch size",
    "optimisation.learning_rate": "learning rate",
    "optimisation.schedule": "schedule",
    "optimisation.weight_decay": "weight decay",
    "facts.parameters": "parameters",
    "facts.precision": "precision",
    "facts.device": "device",
    "facts.corpus_sha256": "SHA-256 of the corpus",
    "versions.transformers": "transformers",
    "versions.torch": "torch",
    "versions.babyssa": "babyssa",
    "versions.commit": "commit of babyssa",
}
_CITATION = """@book{macwhinney2000childes,
  title = {The {CHILDES} Project: Tools for Analyzing Talk},
  author = {MacWhinney, Brian},
  edition = {3},
  publisher = {Lawrence Erlbaum},
  year = {2000}
}"""
_SSA = """

@misc{naim2025ssa,
  title = {Scaled Signed Averaging},
  author = {Naim and Bhar and Bolte and Asher},
  eprint = {2508.14685},
  archiveprefix = {arXiv},
  year = {2025}
}"""


def model_card(
    loaded: LoadedModel, repo: str, needs_code: bool, results: Sequence[StoredResult], license_name: str
) -> ModelCard:
    """The card of a model that is to be `repo` on the hub.

    Parameters
    ----------
    loaded : LoadedModel
        The model, loaded from its run folder or checkpoint.
    repo : str
        Owner and name.
    needs_code : bool
        Whether it loads with ``trust_remote_code=True`` only.
    results : sequence of StoredResult
        Probe results of the model, the first of each suite, and of other seeds of its variant.
    license_name : str
        As the hub knows it, such as "mit".
    """
    folder = Path(loaded.name)
    identity = read_identity(folder)
    run = folder if (folder / CONFIG).is_file() else folder.parent.parent
    settings = read_settings(run) if (run / CONFIG).is_file() else {}
    variant = identity.get("variant") or "softmax"
    task = "fill-mask" if loaded.kind == "masked" else "text-generation"
    data = ModelCardData(
        language="en",
        license=license_name,
        library_name="transformers",
        pipeline_tag=task,
        tags=["babyssa", "child-directed-speech", variant],
        model_name=repo.rpartition("/")[2],
        eval_results=[
            EvalResult(
                task_type=task,
                dataset_type="minimal-pairs",
                dataset_name=result.summary["suite"],
                metric_type="accuracy",
                metric_name=f"accuracy ({result.summary['method']}), mean over paradigms",
                metric_value=round(result.summary["accuracy"], 4),
            )
            for result in _first_of_each_suite(results)
        ]
        or None,
    )
    parts = [
        _about(loaded, repo, variant, identity),
        _loading(loaded, repo, needs_code),
        _training(settings, identity),
        _learned(loaded),
        *_probes(results),
        f"## Citation\n\n```bibtex\n{_CITATION}{'' if variant == 'softmax' else _SSA}\n```",
    ]
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(filter(None, parts)) + "\n")


def _about(loaded: LoadedModel, repo: str, variant: str, identity: dict[str, Any]) -> str:
    kind = "masked" if loaded.kind == "masked" else "causal"
    seen = ", ".join(f"{identity[key]:,} {key}" for key in ("words", "tokens") if identity.get(key))
    trained = f" It was trained with seed {identity['seed']}" if identity.get("seed") is not None else ""
    if trained and identity.get("step"):
        trained += f" for {identity['step']:,} steps" + (f", and has seen {seen}" if seen else "")
    return (
        f"# {repo.rpartition('/')[2]}\n\nA {kind} language model whose attention is scored by `{variant}`, made "
        f"with babyssa {__version__}.{trained}{'.' if trained else ''}"
    )


def _loading(loaded: LoadedModel, repo: str, needs_code: bool) -> str:
    auto = loading_code(type(loaded.model).__name__, repo, needs_code)
    consent = ", trust_remote_code=True" if needs_code else ""
    why = (
        "\n\n`trust_remote_code=True` runs modeling_babyssa.py, which has the attention of this model; without "
        "it, loading fails rather than run the model with Softmax."
        if needs_code
        else ""
    )
    return (
        f"## Loading\n\n```python\nfrom transformers import {auto.partition('.')[0]}, AutoTokenizer\n\n"
        f'model = {auto}\ntokenizer = AutoTokenizer.from_pretrained("{repo}"{consent})\n```{why}'
    )


def _training(settings: dict[str, Any], identity: dict[str, Any]) -> str:
    found = [
        ("seed", identity.get("seed")),
        ("steps", identity.get("step")),
        ("words seen", identity.get("words")),
    ]
    if settings.get("corpus"):
        # A path says where it was on the author's machine.
        found.insert(0, ("corpus", Path(str(settings["corpus"])).name))
    for key, label in _RECIPE.items():
        value: Any = settings
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        found.append((label, value))
    rows = [f"| {label} | {_plain(value)} |" for label, value in found if value is not None]
    return "\n".join(["## Training", "", "| | |", "| --- | --- |", *rows]) if rows else ""


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value).replace("|", "\\|")


def _learned(loaded: LoadedModel) -> str:
    learned = {name: numbers for name, numbers in scoring_parameters(loaded.model).items() if numbers}
    if not learned:
        return ""
    keys = list(dict.fromkeys(key for numbers in learned.values() for key in numbers))
    lines = ["## Learned numbers of the attention", "", "Mean over heads, and the range where they differ.", ""]
    lines += [f"| layer | {' | '.join(keys)} |", "| --- " * (len(keys) + 1) + "|"]
    for place, numbers in enumerate(learned.values(), 1):
        lines.append(f"| {place} | {' | '.join(_range(numbers.get(key, [])) for key in keys)} |")
    return "\n".join(lines)


def _range(values: list[float]) -> str:
    if not values:
        return ""
    spread = f" ({min(values):.2f} to {max(values):.2f})" if max(values) - min(values) >= 0.005 else ""
    return f"{np.mean(values):.2f}{spread}"


def _first_of_each_suite(results: Sequence[StoredResult]) -> list[StoredResult]:
    found: dict[tuple, StoredResult] = {}
    for result in results:
        found.setdefault((result.summary["suite_sha256"], result.summary["method"]), result)
    return list(found.values())


def _probes(results: Sequence[StoredResult]) -> Iterator[str]:
    for first in _first_of_each_suite(results):
        keys = ("suite_sha256", "method", "reduction")
        same = [r for r in results if all(r.summary[key] == first.summary[key] for key in keys)]
        accuracies = [{p["name"]: p["accuracy"] for p in r.summary["paradigms"]} for r in same]
        several = f" | mean of {len(same)} seeds [95% interval] |" if len(same) > 1 else " |"
        lines = [
            f"## {first.summary['suite']}: accuracy on minimal pairs, in %",
            "",
            f"Scored by `{first.summary['method']}`; {first.summary['n_pairs']:,} pairs; 50 is chance.",
            "",
            f"| paradigm | this model{several}",
            "| --- | --- |" + " --- |" * (len(same) > 1),
        ]
        rows = {name: [found[name] for found in accuracies if name in found] for name in accuracies[0]}
        rows["**mean**"] = [result.summary["accuracy"] for result in same]
        for name, values in rows.items():
            cells = [name, percent(values[0])]
            if len(values) > 1:
                low, high = t_interval(values)
                cells.append(f"{percent(float(np.mean(values)))} [{percent(low)}, {percent(high)}]")
            lines.append(f"| {' | '.join(cells)} |")
        yield "\n".join(lines)
