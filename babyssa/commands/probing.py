"""Verbs that look into a model: minimal pairs, diagnostic classifiers, attention, saturation."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from babyssa.checks import checked
from babyssa.commands.named import names_model
from babyssa.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from babyssa.comparison.curves import LearningCurves
    from babyssa.pages.attention import AttentionPage
    from babyssa.probing.accuracy import ProbeResult
    from babyssa.probing.attention import AttentionMaps
    from babyssa.probing.diagnostic import DiagnosticResult
    from babyssa.probing.heads import LearnedNumbers
    from babyssa.probing.saturation import Saturation


@checked
@names_model
def probe(
    model: Any,
    suite: Any = "packaged",
    *,
    out: Path | None = None,
    order: Literal["bad-first", "good-first"] | None = None,
    method: Literal["pll", "pll-word-l2r", "holistic", "loglik"] | None = None,
    reduction: Literal["sum", "mean", "per-word", "per-character"] | None = None,
    paradigms: Iterable[str] | None = None,
    limit: int | None = None,
    columns: Iterable[str] = (),
    delimiter: str | None = None,
    strict: bool = False,
    definition: Literal["original", "babylm-2025", "babylm-2026"] = "babylm-2025",
    predictions: Path | None = None,
    all_checkpoints: bool = False,
    variant: str | None = None,
    seed: int | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    overwrite: bool = False,
) -> ProbeResult | LearningCurves:
    """Score a suite of minimal pairs: is the grammatical sentence of each pair the more probable one?

    Shows accuracy by paradigm; a tie counts one half. With --all-checkpoints, probes every checkpoint of a run,
    each into a folder of its own in --out, and shows the learning curve; `babyssa compare --over` takes several.

    Parameters
    ----------
    model : str, path-like, LoadedModel or (model, tokenizer)
        a model folder or hub id, masked or causal
    suite : str, path-like, Suite, DataFrame, Dataset or list
        packaged, a file (.txt, .jsonl, .csv, .tsv), a folder of them, or a folder with manifest.yaml; items of
        more options or with contexts are read too (EWoK, COMPS, entity tracking, wug words)
    out : path-like, optional
        folder to write summary.json, pairs.csv and the scores of tokens (tokens.npz) into
    order : str, optional
        which line of a pair comes first in .txt files, where no manifest says so
    method : str, optional
        how to score; default: pll for masked models, loglik for causal ones, which take no other
    reduction : str, optional
        from tokens to the sentence: their sum (default), or that per token (mean), word or character; holistic
        is a mean by definition
    paradigms : iterable of str, optional
        only these paradigms
    limit : int, optional
        pairs per paradigm, from the first (default: all)
    columns : iterable of str
        columns or keys with other names, such as good=grammatical bad=ungrammatical
    delimiter : str, optional
        what separates the columns of a table (default: found): one character, or comma, semicolon, tab, bar
    strict : bool
        refuse pairs whose two sentences are identical, which otherwise count as ties
    definition : str
        what EWoK, COMPS and entity tracking compare: as first published, or as BabyLM's pipeline of a year
    predictions : path-like, optional
        a file to add what the model prefers to, as BabyLM collects it: {task: {subtask: {"predictions": ...}}}
    all_checkpoints : bool
        probe the checkpoints of a run folder and, if it is finished, the run itself
    variant : str, optional
        name of the scoring function in comparisons (default: from the model folder's config.yaml)
    seed : int, optional
        seed of the training run (default: from the model folder's config.yaml)
    batch_size : int, optional
        rows in one forward pass; does not change scores
    device : str, optional
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    precision : str
        bfloat16 is faster where the device computes in it, and decides a few close pairs differently
    overwrite : bool
        replace an earlier result in --out

    Returns
    -------
    ProbeResult, or of all checkpoints LearningCurves

    Raises
    ------
    OutputExistsError
        If `out` holds a result and `overwrite` is false.
    ConfigError, DataError, ModelError
        If suite, model and method cannot be used, or not together; nothing is scored if one sentence cannot be.

    Examples
    --------
    babyssa probe runs/ssa --out results/ssa
    babyssa probe runs/ssa --suite zorro/ --order bad-first --out results/zorro
    babyssa probe runs/ssa --all-checkpoints --out results/ssa-curve
    babyssa probe gpt2 --suite blimp.jsonl --method loglik --out results/gpt2
    babyssa probe runs/ssa --suite ewok/ --predictions all_preds.json
    """
    from babyssa.commands.words import mapping
    from babyssa.files import check_overwrite
    from babyssa.probing.suites import Suite, load_suite

    folders = _checkpoints(model, out) if all_checkpoints else [(model, out)]
    for _, folder in folders:
        if folder is not None:
            check_overwrite(folder, ["summary.json", "pairs.csv"], overwrite)
    if not isinstance(suite, Suite):
        suite = load_suite(
            suite, order, mapping(columns), delimiter=delimiter, strict=strict, definition=definition
        )
    suite = suite.select(paradigms, limit)

    from babyssa.models.loading import as_loaded
    from babyssa.probing.accuracy import check_predictions, probe, write_predictions, write_result

    if predictions is not None:
        check_predictions(suite, Path(predictions), overwrite)

    for each, folder in folders:
        result = probe(
            as_loaded(each, device=device),
            suite,
            method=method,
            reduction=reduction,
            variant=variant,
            seed=seed,
            batch_size=batch_size,
            precision=precision,
        )
        if folder is not None:
            write_result(result, suite, Path(folder))
        if predictions is not None:
            write_predictions(result, suite, Path(predictions))
    if all_checkpoints:
        from babyssa.comparison.curves import compare_curves

        return compare_curves([folder for _, folder in folders], out, overwrite=overwrite)
    return result


def _checkpoints(run: Any, out: Path | None) -> list[tuple[Path, Path]]:
    """The checkpoints of a run, each with the folder for its result."""
    from babyssa.models.loading import ModelSource
    from babyssa.models.run_config import list_checkpoints

    if out is None:
        raise ConfigError("--all-checkpoints writes a result for each", remedy="give --out")
    if isinstance(run, ModelSource):
        if run.revision is not None:
            raise ConfigError("a run folder has no revisions", remedy="leave out --revision or --all-checkpoints")
        run = run.name
    run = Path(run) if isinstance(run, (str, Path)) else Path()
    found = list_checkpoints(run)
    if not found:
        raise ModelError("no checkpoints in this folder", path=run, remedy="name a run of babyssa train")
    return [(folder, Path(out) / ("final" if folder == run else folder.name)) for folder in found]


@checked
@names_model
def diagnose(
    model: Any,
    *,
    task: Literal["subject-number"] = "subject-number",
    folds: int = 5,
    seed: int = 0,
    out: Path | None = None,
    device: str | None = None,
    overwrite: bool = False,
) -> DiagnosticResult:
    """Read a grammatical feature off the hidden states of each layer with a linear classifier.

    The task subject-number is the number of the subject's head, read before the verb, across a prepositional
    phrase whose noun has a number of its own. Shows, for each layer: accuracy on nouns that the classifier was
    not trained on, accuracy on nouns that it was, accuracy on a control task (random labels for each noun), and
    selectivity (the second minus the third).

    Parameters
    ----------
    model : str, path-like, LoadedModel or (model, tokenizer)
        a model folder or hub id, masked or causal
    task : str
        what to read
    folds : int
        folds of the cross-validation, at least 2
    seed : int
        seed of the sentences, the folds and the control labels
    out : path-like, optional
        folder to write diagnostic.json and diagnostic.csv into
    device : str, optional
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    overwrite : bool
        replace an earlier result in --out

    Returns
    -------
    DiagnosticResult
        One :class:`babyssa.probing.diagnostic.LayerResult` per layer, from the embeddings up.

    Raises
    ------
    ConfigError
        If there are fewer than 2 folds.
    ModelError
        If the model cannot be loaded or gives no hidden states, or its tokenizer splits too many of the nouns.
    OutputExistsError
        If `out` holds a result and `overwrite` is false.

    Examples
    --------
    babyssa diagnose runs/ssa
    babyssa diagnose runs/ssa --out results/ssa-number
    """
    from babyssa.files import check_overwrite
    from babyssa.models.loading import as_loaded
    from babyssa.probing.diagnostic import RESULT, TABLE, check_diagnosis, diagnose, write_result

    check_diagnosis(task, folds, seed)
    if out is not None:
        check_overwrite(out, [RESULT, TABLE], overwrite)
    result = diagnose(as_loaded(model, device=device), task=task, folds=folds, seed=seed)
    if out is not None:
        write_result(result, Path(out))
    return result


@checked
@names_model
def attention_maps(
    model: Any,
    text: str | None = None,
    *,
    also: Iterable[str] = (),
    layers: Iterable[int] | None = None,
    heads: Iterable[int] | None = None,
    out: Path | None = None,
    device: str | None = None,
    overwrite: bool = False,
) -> AttentionMaps | LearnedNumbers | AttentionPage:
    """Show where each head of a model looks while it reads a text, or without a text, what each head learned.

    With a text: for every head, the entropy of a query's weights (nats) and its largest weight, both averaged over
    the queries, and the numbers of its scoring function (n and b, tau, ...). Layers and heads count from 1. With
    --out, writes attention.png (the maps), weights.csv (every weight), heads.csv and attention.json. A masked
    model reads the text between its special tokens, a causal one after bos, with nothing masked.

    With --out NAME.html, writes a page for any browser instead: choose a text, a layer and a head.

    Without a text: the numbers of every head, of a model of any setting, also one that reads no text. With --out,
    writes numbers.csv (over training too, from the log and checkpoints of a run) and numbers.png.

    Parameters
    ----------
    model : str, path-like, LoadedModel or (model, tokenizer)
        a run or model folder, or hub id
    text : str, optional
        what it reads
    also : iterable of str
        further texts, for a page
    layers : iterable of int, optional
        only these layers
    heads : iterable of int, optional
        only these heads of each layer
    out : path-like, optional
        folder to write to, or a page (.html)
    device : str, optional
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    overwrite : bool
        replace an earlier result in --out

    Returns
    -------
    AttentionMaps, LearnedNumbers or AttentionPage

    Raises
    ------
    ConfigError
        If there is no such layer or head, or there are further texts without a page.
    DataError
        If the text is empty, too long for the model, or cannot be represented.
    ModelError
        If the model cannot be loaded, or forms no attention weights.
    OutputExistsError
        If `out` holds a result and `overwrite` is false.

    Examples
    --------
    babyssa attention runs/ssa --out numbers
    babyssa attention runs/ssa "where does the dog sleep ?"
    babyssa attention runs/ssa "the dog sleeps ." --also "look !" --out page.html
    babyssa attention gpt2 "The dogs in the garden bark." --layers 1 12 --out maps
    """
    from babyssa.console import say
    from babyssa.files import check_overwrite
    from babyssa.probing import attention
    from babyssa.probing import heads as numbers

    if out is not None and Path(out).suffix == ".html":
        return _attention_page(model, text, also, layers, heads, Path(out), device, overwrite)
    if also:
        raise ConfigError("further texts need a page", remedy="give --out NAME.html")
    if text is not None:
        chosen = {"layers": layers, "heads": heads}
        found = attention.attention_maps(model, text, out=out, overwrite=overwrite, device=device, **chosen)
        written = attention.FILES
    else:
        if out is not None:
            check_overwrite(out, numbers.FILES, overwrite)
        found = numbers.learned_numbers(model, layers=layers, heads=heads)
        written = numbers.FILES if found.history else numbers.FILES[:1]
        if out is not None:
            numbers.write_numbers(found, Path(out))
    if out is not None:
        say(f"wrote {', '.join(written)} to {out}")
    return found


def _attention_page(
    model: Any,
    text: str | None,
    also: Iterable[str],
    layers: Iterable[int] | None,
    heads: Iterable[int] | None,
    out: Path,
    device: str | None,
    overwrite: bool,
) -> AttentionPage:
    """The page of attention over one text or more."""
    from babyssa.files import check_overwrite
    from babyssa.models.loading import as_loaded
    from babyssa.pages.attention import write_attention_page
    from babyssa.probing.attention import attention_maps, check_reads_text
    from babyssa.probing.heads import learned_numbers

    if text is None:
        raise ConfigError(
            "a page of attention needs a text", remedy="give one, or a folder for the learned numbers"
        )
    check_overwrite(out.parent, (out.name,), overwrite)
    check_reads_text(model)
    loaded = as_loaded(model, device=device)
    also, layers, heads = (None if chosen is None else list(chosen) for chosen in (also, layers, heads))
    maps = [attention_maps(loaded, each, layers=layers, heads=heads) for each in (text, *also)]
    is_run = isinstance(model, (str, Path)) and Path(model).is_dir()
    numbers = learned_numbers(model, layers=layers, heads=heads) if is_run else None
    options = {"also": also, "layers": layers, "heads": heads}
    words = ["babyssa", "attention", loaded.name, text, "--out", str(out)]
    words += [word for key, values in options.items() if values for word in (f"--{key}", *map(str, values))]
    return write_attention_page(maps, numbers, out, shlex.join(words))


@checked
def saturation(
    scorings: Iterable[str] | None = None,
    *,
    scoring: dict[str, list[str]] | None = None,
    keys: int = 16,
    revision: str | None = None,
    out: Path | None = None,
    overwrite: bool = False,
) -> Saturation:
    """Measure how scoring functions saturate, and compare with theory.

    Two conditions: one logit leads the others by D, and all logits are magnified by a factor c. Shows, for
    each scoring and condition, what theory says of the share of the weight that is left to the other keys, and
    the same measured in float64: the slope of its logarithm, the point from which it is exactly 0, or what is
    left of it in the limit. With --out, writes saturation.csv (the table), curves.csv (the curves) and
    saturation.png. Of a model, every head is measured with the numbers that it learned, beside Softmax.

    Parameters
    ----------
    scorings : iterable of str, or mapping of str to config, optional
        names of scoring functions, model folders or hub ids (default: all scorings with a known law); in Python
        also configs under labels
    scoring : dict, optional
        parameters of those scorings that have them, one or several values each (alone: of ssa, beside softmax)
    keys : int
        number of keys, the leading one included; from 4 to 10,000
    revision : str, optional
        branch, tag or commit of models on the hub (default: their main branch)
    out : path-like, optional
        folder to write to
    overwrite : bool
        replace an earlier result in --out

    Returns
    -------
    Saturation
        What is learnable in a named scoring is measured at its initial value.

    Raises
    ------
    ConfigError
        If a name or parameter is unknown, there are too few or too many keys, or no weight can be measured because
        parameters are too extreme.
    ModelError
        If a model cannot be read.
    OutputExistsError
        If `out` holds a result and `overwrite` is false.

    Examples
    --------
    babyssa saturation
    babyssa saturation --scorings softmax ssa-1.5 ssa-2 sparsemax --out saturation
    babyssa saturation --scoring.n 1.5 3 10 --scoring.b 0.8 --out saturation
    babyssa saturation runs/ssa --out saturation
    """
    from babyssa.files import check_overwrite

    if out is not None:
        check_overwrite(out, ["saturation.csv", "curves.csv", "saturation.png"], overwrite)

    from babyssa.console import say
    from babyssa.probing.saturation import saturation, write_saturation

    result = saturation(scorings, scoring=scoring, keys=keys, revision=revision)
    if out is not None:
        write_saturation(result, Path(out))
        say(f"wrote saturation.csv, curves.csv, saturation.png to {out}")
    return result
