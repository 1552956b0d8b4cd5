"""``babyssa probe``, ``babyssa score`` and ``babyssa diagnose``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from babyssa.console import table
from babyssa.errors import ConfigError, printable


def probe(
    model: str,
    *,
    suite: str = "packaged",
    out: Path,
    order: str | None = None,
    method: str | None = None,
    reduction: str | None = None,
    paradigms: list[str] = (),
    limit: int | None = None,
    columns: list[str] = (),
    delimiter: str | None = None,
    strict: bool = False,
    variant: str | None = None,
    seed: int | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    overwrite: bool = False,
) -> None:
    """Score a suite of minimal pairs: is the grammatical sentence of each pair the more probable one?

    Prints accuracy by paradigm; a tie counts one half. Writes DIR/summary.json and DIR/pairs.csv.

    Parameters
    ----------
    model
        a model folder or hub id, masked or causal
    suite
        'packaged', a file (.txt, .jsonl, .csv, .tsv), a folder of them, or a folder with manifest.yaml
    out
        the folder to write the result into
    order
        bad-first or good-first: the lines of a pair in .txt files, where no manifest states it
    method
        pll (default), pll-word-l2r or holistic for masked models, loglik for causal ones
    reduction
        sum (default) or mean over tokens; holistic is a mean
    paradigms
        only these paradigms
    limit
        only so many pairs of each paradigm, from the first
    columns
        columns or keys named otherwise, such as good=grammatical bad=ungrammatical
    delimiter
        what separates the columns of a table (default: found): one character, or comma, semicolon, tab, bar
    strict
        refuse pairs whose two sentences are identical, which otherwise count as ties
    variant
        name of the scoring function in comparisons (default: from the model folder's config.yaml)
    seed
        seed of the training run (default: from the model folder's config.yaml)
    batch_size
        rows in one forward pass (does not change scores)
    device
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    precision
        bfloat16 is faster where the device computes in it, and decides a few close pairs otherwise
    overwrite
        replace an earlier result in DIR

    Examples
    --------
    babyssa probe runs/ssa --out results/ssa
    babyssa probe runs/ssa --suite Zorro/sentences/babyberta --order bad-first --out results/ssa-zorro
    babyssa probe gpt2 --suite blimp.jsonl --method loglik --out results/gpt2
    """
    from babyssa.files import check_overwrite
    from babyssa.probing.suites import load_suite

    check_overwrite(out, ["summary.json", "pairs.csv"], overwrite)
    loaded = load_suite(suite, order, _pairs_of_words(columns), delimiter=delimiter, strict=strict)

    from babyssa import probing

    result = probing.probe(
        model,
        loaded,
        method=method,
        reduction=reduction,
        paradigms=paradigms or None,
        limit=limit,
        variant=variant,
        seed=seed,
        out=out,
        overwrite=overwrite,
        batch_size=batch_size,
        device=device,
        precision=precision,
    )
    rows = [(p.name, p.phenomenon, str(p.n_pairs), _percent(p.accuracy), str(p.ties)) for p in result.paradigms]
    ties = sum(p.ties for p in result.paradigms)
    rows.append(("mean over paradigms", "", str(result.n_pairs), _percent(result.accuracy), str(ties)))
    print(f"{result.model} on {result.suite}, {result.method} ({result.reduction})")
    print(table(("paradigm", "phenomenon", "pairs", "accuracy %", "ties"), rows, right={2, 3, 4}, total=True))


def score(
    model: str,
    *text: str,
    method: str | None = None,
    reduction: str | None = None,
    json: bool = False,
    batch_size: int | None = None,
    device: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> None:
    """Score sentences, token by token, in nats (higher is better).

    Parameters
    ----------
    model
        a model folder or hub id, masked or causal
    text
        sentences; from standard input, one in a line, if none is given
    method
        pll (default), pll-word-l2r or holistic for masked models, loglik for causal ones
    reduction
        sum (default) or mean over tokens; holistic is a mean
    json
        print JSON instead of a table
    batch_size
        rows in one forward pass (does not change scores)
    device
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    precision
        bfloat16 is faster where the device computes in it

    Examples
    --------
    babyssa score runs/ssa "the dogs bark ." "the dogs barks ."
    babyssa score gpt2 --json < sentences.txt
    """
    sentences = list(text) or _sentences_from_stdin()

    from babyssa import models
    from babyssa.models.scores import choose_method

    loaded = models.load_model(model, device)
    method, reduction = choose_method(loaded, method, reduction)
    scores = models.score(
        loaded, sentences, method=method, reduction=reduction, batch_size=batch_size, precision=precision
    )
    if json:
        from dataclasses import asdict
        from json import dumps

        result = {
            "model": model,
            "method": method,
            "reduction": reduction,
            "precision": precision,
            "sentences": [asdict(s) for s in scores],
        }
        print(dumps(result, indent=2, ensure_ascii=False))
        return
    print(f"{model}, {method} ({reduction}), nats")
    for sentence in scores:
        rows = [(t, f"{v:.4f}") for t, v in zip(sentence.tokens, sentence.token_scores, strict=True)]
        rows.append((reduction, f"{sentence.score:.4f}"))
        print(f"\n{printable(sentence.text)}")
        print(table(("token", "score"), rows, right={1}, total=True))


def diagnose(
    model: str,
    *,
    task: str = "subject-number",
    folds: int = 5,
    seed: int = 0,
    out: Path | None = None,
    device: str | None = None,
    overwrite: bool = False,
) -> None:
    """Read a grammatical feature off the hidden states of each layer with a linear classifier.

    The task subject-number is the number of the subject's head, read before the verb, across a prepositional
    phrase whose noun has a number of its own. Prints, by layer: accuracy on nouns that the classifier was not
    trained on, accuracy on nouns that it was, accuracy on a control task (random labels for each noun), and
    selectivity (the second less the third).

    Parameters
    ----------
    model
        a model folder or hub id, masked or causal
    task
        what to read: subject-number
    folds
        number of cross-validation folds
    seed
        seed of the sentences, the folds and the control labels
    out
        a folder to write diagnostic.json and diagnostic.csv into
    device
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    overwrite
        replace an earlier result in DIR

    Examples
    --------
    babyssa diagnose runs/ssa
    babyssa diagnose runs/ssa --out results/ssa-number
    """
    from babyssa import probing

    result = probing.diagnose(
        model, task=task, folds=folds, seed=seed, out=out, overwrite=overwrite, device=device
    )
    rows = [
        (
            "embeddings" if layer.layer == 0 else str(layer.layer),
            _percent(layer.accuracy),
            f"{_percent(layer.accuracy_low)}-{_percent(layer.accuracy_high)}",
            _percent(layer.accuracy_seen_words),
            _percent(layer.control_accuracy),
            _percent(layer.selectivity),
            f"{_percent(layer.selectivity_low)} to {_percent(layer.selectivity_high)}",
        )
        for layer in result.layers
    ]
    print(f"{result.model}, {result.task}: {result.n_sentences} sentences, {result.n_items} nouns, {folds} folds")
    header = (
        "layer",
        "unseen nouns %",
        "95% over folds",
        "seen nouns %",
        "control %",
        "selectivity",
        "95% over folds",
    )
    print(table(header, rows, right={1, 2, 3, 4, 5, 6}))
    print(f"majority baseline {_percent(result.majority_accuracy)} %")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _sentences_from_stdin() -> list[str]:
    import sys

    from babyssa.console import say
    from babyssa.corpus.lines import decoded_lines, filled_lines
    from babyssa.errors import DataError

    if sys.stdin.isatty():
        say("reading sentences from standard input, one in a line; end with Ctrl-D")
    source = Path("standard input")
    sentences = [line for _, line in filled_lines(decoded_lines(sys.stdin.buffer, source), source)]
    if not sentences:
        raise DataError("no sentences", path=source, remedy="pass them as arguments or one in a line")
    return sentences


def _pairs_of_words(words: Iterable[str]) -> dict[str, str]:
    """``["good=a", "bad=b"]`` as a dict."""
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise ConfigError(f"--columns takes words like good=NAME, not '{word}'")
        pairs[key] = value
    return pairs
