"""Verbs that ask a language model about text: scores, perplexity, generation, benchmark tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from babyssa.checks import checked
from babyssa.commands.named import names_model

if TYPE_CHECKING:
    from babyssa.decoder.harness import HarnessResult, HarnessResults
    from babyssa.models.sentences import SentenceScores
    from babyssa.models.text_perplexity import Perplexities, Perplexity


@checked
@names_model
def score(
    model: Any,
    sentences: Iterable[str | Mapping] | None = None,
    *,
    table: Path | None = None,
    columns: Iterable[str] = (),
    given: Any = None,
    separator: str = "space",
    alternatives: Iterable[str] = (),
    per: Literal["token", "word", "region", "sentence"] = "token",
    punctuation: Literal["attached", "apart"] = "attached",
    measure: Literal["log-probability", "surprisal", "probability"] = "log-probability",
    base: Literal["nats", "bits"] = "nats",
    ranks: bool = False,
    method: Literal["pll", "pll-word-l2r", "holistic", "loglik"] | None = None,
    reduction: Literal["sum", "mean", "per-word", "per-character"] | None = None,
    out: Path | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    overwrite: bool = False,
) -> SentenceScores:
    """Score texts by token, word, region or sentence, alone or in a context.

    A log-probability is better the higher it is, a surprisal the lower. What is unknown to the tokenizer is
    counted. docs/scoring.md defines every score.

    Parameters
    ----------
    model : str, path-like, LoadedModel or (model, tokenizer)
        a model folder or hub id, masked or causal
    sentences : iterable of str, DataFrame, Dataset or list of dict, optional
        sentences (default: one per line of standard input)
    table : path-like, optional
        score the rows of a .csv, .tsv, .jsonl or .parquet file instead: its column text, each after what is in
        given if there is such a column; regions maps names to characters from and to; with a column region,
        each row is a region of the sentence that its item and condition name; other columns are kept
    columns : iterable of str
        columns with other names, such as text=word given=context
    given : str, optional
        a context before every text, which is not scored; in Python also a list with one for each
    separator : str
        what stands between context and text: any string, or space, newline, none
    alternatives : iterable of str
        words of which each is put into the blank ___ of each text, and scored there
    per : str
        what one row of the table is: a token, a word (its tokens together), a region or a sentence
    punctuation : str
        whether punctuation marks belong to the word that they stand at, or are words of their own
    measure : str
        what is shown: log-probability, surprisal (minus that) or probability
    base : str
        the unit of log-probability and surprisal
    ranks : bool
        show how probable each token is among all of the vocabulary, from 1
    method : str, optional
        how to score; default: pll for masked models, loglik for causal ones, which take no other
    reduction : str, optional
        from tokens to the text: their sum (default), or that per token (mean), word or character; holistic is
        a mean by definition
    out : path-like, optional
        a file to write the rows to, .csv or .parquet, or all scores, .json
    batch_size : int, optional
        rows in one forward pass; does not change scores
    device : str, optional
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    precision : str
        what the model computes in, up to the logits; bfloat16 is faster where the device computes in it
    overwrite : bool
        replace an existing --out

    Returns
    -------
    SentenceScores
        A sequence of :class:`babyssa.models.SentenceScore`, in the order given; ``to_frame()`` has the rows.

    Raises
    ------
    ConfigError
        If method or reduction does not fit the model, or options do not fit each other.
    DataError
        If a text cannot be scored; nothing is scored then.
    ModelError
        If the model cannot be loaded, or gives NaN or infinity.
    OutputExistsError
        If `out` exists and `overwrite` is false.

    Examples
    --------
    babyssa score runs/ssa "the dogs bark ." "the dogs barks ."
    babyssa score gpt2 --table texts.csv --per word --out words.csv
    babyssa score runs/ssa "absorbs sweat ." --given "a sock"
    babyssa score runs/ssa "the dogs ___ big ." --alternatives is are
    babyssa score gpt2 --json < sentences.txt
    """
    from babyssa.commands.words import mapping
    from babyssa.corpus.lines import sentences_from_stdin
    from babyssa.errors import ConfigError
    from babyssa.files import check_overwrite
    from babyssa.models.loading import as_loaded
    from babyssa.models.sentences import check_file_name, score, write_scores

    if table is not None and sentences is not None:
        raise ConfigError("there are both sentences and a table", remedy="leave one out")
    if out is not None:
        check_file_name(Path(out))
        check_overwrite(Path(out).parent, [Path(out).name], overwrite)
    if table is not None:
        sentences = Path(table)
    elif sentences is None:
        sentences = sentences_from_stdin()
    result = score(
        as_loaded(model, device=device),
        sentences,
        given=given,
        separator=separator,
        alternatives=tuple(alternatives),
        columns=mapping(columns),
        per=per,
        punctuation=punctuation,
        measure=measure,
        base=base,
        ranks=ranks,
        method=method,
        reduction=reduction,
        batch_size=batch_size,
        precision=precision,
    )
    if out is not None:
        write_scores(result, Path(out))
    return result


@checked
@names_model
def perplexity(
    model: Any,
    texts: Iterable[str] | str,
    *,
    documents: Literal["lines", "blocks", "file"] | None = None,
    text_column: str = "text",
    split: str | None = None,
    limit: int | None = None,
    streaming: bool = False,
    max_length: int | None = None,
    stride: int | None = None,
    batch_size: int | None = None,
    device: str | None = None,
) -> Perplexity | Perplexities:
    """Perplexity of texts (causal models) or pseudo-perplexity of their sentences (masked models), per token.

    A causal model reads a text through a sliding window, and predicts every token once.

    Parameters
    ----------
    model : str, path-like, LoadedModel or (model, tokenizer)
        a model folder or hub id, causal or masked
    texts : iterable of path-like, or one
        text files, prepared corpora, or datasets
    documents : str, optional
        where documents end in a text file: lines, blocks (separated by empty lines), or file (the whole is one
        text, without an end token); default: as the model was trained, if its folder says so, else file
    text_column : str
        column of text in a dataset
    split : str, optional
        split of a dataset (default: test, else validation, else train, else the only one)
    limit : int, optional
        documents of each text, from the first (default: all)
    streaming : bool
        fetch the rows of a dataset as they are read, rather than all before
    max_length : int, optional
        tokens in a window (default: the model's positions)
    stride : int, optional
        tokens by which the window moves (default: half of max-length); fewer give each token more context
    batch_size : int, optional
        windows in one forward pass; does not change the result
    device : str, optional
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)

    Returns
    -------
    Perplexity or Perplexities
        Of one text, or of several.

    Raises
    ------
    DataError
        If a text is missing, empty or broken, or has no such split; for a masked model also if a sentence is too
        long.
    ConfigError
        If `max_length` or `stride` does not fit the model.
    ModelError
        If the model cannot be loaded, or gives NaN or infinity.

    Examples
    --------
    babyssa perplexity runs/decoder held-out.txt other.txt
    babyssa perplexity gpt2 Salesforce/wikitext:wikitext-2-raw-v1 \\
        --split validation
    babyssa perplexity gpt2 HuggingFaceFW/fineweb-edu:sample-10BT \\
        --streaming --limit 1000 --json
    babyssa perplexity runs/encoder sentences.txt
    """
    from babyssa.models.loading import as_loaded
    from babyssa.models.text_perplexity import perplexities

    found = perplexities(
        as_loaded(model, device=device),
        [texts] if isinstance(texts, str | Path) else texts,
        documents=documents,
        text_column=text_column,
        split=split,
        limit=limit,
        streaming=streaming,
        max_length=max_length,
        stride=stride,
        batch_size=batch_size,
    )
    return found.texts[0] if len(found.texts) == 1 else found


@checked
@names_model
def generate(
    model: Any,
    prompts: Iterable[str] = ("",),
    *,
    max_new_tokens: int = 40,
    temperature: float = 1.0,
    seed: int = 0,
    device: str | None = None,
) -> list[str]:
    """Let a causal model continue each prompt, until it ends the text or the tokens are used up.

    Parameters
    ----------
    model : str, path-like, LoadedModel or (model, tokenizer)
        a model folder or hub id, causal
    prompts : iterable of str
        texts to continue; without one, a new text begins
    max_new_tokens : int
        most tokens to add
    temperature : float
        divides the logits before a token is drawn; 0 always takes the most probable token
    seed : int
        decides what is drawn for each prompt, whatever the others are
    device : str, optional
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)

    Returns
    -------
    list of str
        Each prompt with its continuation, as the tokenizer writes it.

    Raises
    ------
    ConfigError
        If the model is not causal, or a setting is out of its domain.
    DataError
        If a prompt and the new tokens are more than the model takes.

    Examples
    --------
    babyssa generate runs/decoder "where is the" --seed 1
    babyssa generate runs/decoder --temperature 0
    """
    from babyssa.decoder.generation import generate
    from babyssa.models.loading import as_loaded

    return generate(
        as_loaded(model, device=device),
        prompts,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        seed=seed,
    )


@checked
@names_model
def evaluate(
    models: Iterable[str] | Any,
    tasks: Iterable[str] | None = None,
    *,
    include_path: Path | None = None,
    limit: int | None = None,
    fewshot: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    method: Literal["pll", "pll-word-l2r", "loglik"] | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    overwrite: bool = False,
) -> HarnessResult | HarnessResults:
    """Evaluate models on tasks of lm-evaluation-harness (pip install 'babyssa[harness]').

    Shows every metric of a model with its standard error, in percent; of several models, the mean of each variant
    over its seeds, and its difference to Softmax, or else to the first variant, with 95% intervals. Text longer
    than the model's positions loses its beginning, as the harness does it.

    Parameters
    ----------
    models : list of str, path-like, LoadedModel or (model, tokenizer), or one of these
        model folders or hub ids, causal or masked; a masked one takes tasks of multiple choice, and scores an
        answer by its pseudo-log-likelihood after the context
    tasks : iterable of str, optional
        names of tasks (default: arc_challenge arc_easy boolq cb copa hellaswag record winogrande)
    include_path : path-like, optional
        a folder with task YAML files of your own, which take precedence
    limit : int, optional
        examples per task, from the first (default: all)
    fewshot : int, optional
        solved examples in each prompt (default: each task's own number)
    seed : int
        decides which solved examples are taken, and the bootstrap of standard errors
    out : path-like, optional
        folder to write harness.json into; of several models, each into OUT/VARIANT-SEED/
    method : str, optional
        how to score (default: pll for masked models, loglik for causal ones)
    batch_size : int, optional
        rows in one forward pass (default: 16, or for a masked model as many as fit)
    device : str, optional
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    overwrite : bool
        replace an earlier result in --out

    Returns
    -------
    HarnessResult or HarnessResults
        Of one model, or of several.

    Raises
    ------
    BabySSAError
        If lm-evaluation-harness is not installed.
    ConfigError
        If a task is unknown, or has a masked model generate text, or two models are of the same variant and seed.
    DataError
        If a task cannot be loaded, as without a network; nothing is scored then.
    OutputExistsError
        If `out` holds a result and `overwrite` is false.

    Examples
    --------
    babyssa evaluate runs/decoder --tasks arc_easy copa --out results/decoder
    babyssa evaluate runs/softmax-* runs/ssa-* --tasks arc_easy --out results
    babyssa evaluate runs/encoder --tasks my_task --include-path my_tasks
    """
    from babyssa.decoder.harness_tasks import DEFAULT_TASKS, find_tasks

    tasks = DEFAULT_TASKS if tasks is None else tuple(tasks)
    find_tasks(tasks, include_path)

    from babyssa.decoder.harness import HarnessResults, evaluate_models

    found = evaluate_models(
        models if isinstance(models, list) else [models],
        tasks,
        include_path=include_path,
        limit=limit,
        fewshot=fewshot,
        seed=seed,
        out=out,
        method=method,
        batch_size=batch_size,
        device=device,
        overwrite=overwrite,
    )
    return found[0] if len(found) == 1 else HarnessResults(tuple(found))
