"""``babyssa perplexity``, ``babyssa generate`` and ``babyssa evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from babyssa.console import table


def perplexity(
    model: str,
    file: str,
    *,
    documents: Literal["lines", "blocks", "file"] | None = None,
    max_length: int | None = None,
    stride: int | None = None,
    text_column: str = "text",
    json: bool = False,
    batch_size: int | None = None,
    device: str | None = None,
) -> None:
    """Perplexity of a text (causal models) or pseudo-perplexity of its sentences (masked models), per token.

    A causal model reads the text through a window that slides on by a stride, and predicts every token once.

    Parameters
    ----------
    model
        a model folder or hub id, causal or masked
    file
        a text file, a prepared corpus, or a dataset
    documents
        how documents stand in the text: lines, blocks (separated by empty lines), or file (the whole is one text,
        without an end token); default: as the model was trained, if its folder says so, else file
    max_length
        tokens in a window (default: the model's positions)
    stride
        tokens that the window moves on by (default: half of max_length)
    text_column
        column of text in a dataset
    json
        print JSON instead of a table
    batch_size
        windows in one forward pass (does not change the result)
    device
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)

    Examples
    --------
    babyssa perplexity runs/decoder held-out.txt
    babyssa perplexity gpt2 article.txt --stride 128 --json
    babyssa perplexity runs/encoder sentences.txt
    """
    from babyssa import models

    result = models.perplexity(
        model,
        file,
        documents=documents,
        max_length=max_length,
        stride=stride,
        text_column=text_column,
        batch_size=batch_size,
        device=device,
    )
    if json:
        from dataclasses import asdict
        from json import dumps

        print(dumps(asdict(result), indent=2, ensure_ascii=False))
        return
    unit = "sentences" if result.kind == "pseudo-perplexity" else "documents"
    window = "" if result.stride is None else f", window {result.max_length}, stride {result.stride}"
    print(f"{result.kind} of {result.model} on {result.file}")
    print(f"{result.perplexity:.4g} = exp({result.nats_per_token:.4f} nats per token, {result.tokens:,} tokens)")
    print(
        f"{result.word_perplexity:.4g} per word ({result.words:,} words by white space), "
        f"{result.bits_per_byte:.4f} bits per byte ({result.bytes:,} bytes)"
    )
    print(f"{result.documents:,} {unit} ({result.layout}){window}")


def generate(
    model: str,
    *prompt: str,
    max_new_tokens: int = 40,
    temperature: float = 1.0,
    seed: int = 0,
    device: str | None = None,
) -> None:
    """Let a causal model go on from each prompt, until it ends the text or the tokens are used up.

    Parameters
    ----------
    model
        a model folder or hub id, causal
    prompt
        texts to go on from; without one, a new text begins
    max_new_tokens
        most tokens to add
    temperature
        divides the logits before a token is drawn; 0 always takes the most probable
    seed
        decides what is drawn
    device
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)

    Examples
    --------
    babyssa generate runs/decoder "where is the" --seed 1
    babyssa generate runs/decoder --temperature 0
    """
    from babyssa import decoder

    for text in decoder.generate(
        model,
        prompt or ("",),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        seed=seed,
        device=device,
    ):
        print(text)


def evaluate(
    model: str,
    *,
    tasks: list[str] = (),
    include_path: Path | None = None,
    limit: int | None = None,
    fewshot: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    overwrite: bool = False,
) -> None:
    """Evaluate a causal model on tasks of lm-evaluation-harness (pip install 'babyssa[harness]').

    Prints every metric with its standard error, in percent. Writes DIR/harness.json.

    Parameters
    ----------
    model
        a model folder or hub id, causal
    tasks
        names of tasks (default: arc_challenge arc_easy boolq cb copa hellaswag record winogrande)
    include_path
        a folder with task YAML files of your own
    limit
        only the first so many examples of each task
    fewshot
        solved examples in each prompt (default: each task's own number)
    seed
        decides which solved examples are taken
    out
        a folder to write harness.json into
    batch_size
        rows in one forward pass (default: 16)
    device
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    overwrite
        replace an earlier result in DIR

    Examples
    --------
    babyssa evaluate runs/decoder --tasks arc_easy copa --out results/decoder
    babyssa evaluate runs/decoder --tasks my_task --include_path my_tasks
    """
    from babyssa import decoder
    from babyssa.decoder.harness import TASKS

    result = decoder.evaluate(
        model,
        tasks or TASKS,
        include_path=include_path,
        limit=limit,
        fewshot=fewshot,
        seed=seed,
        out=out,
        overwrite=overwrite,
        batch_size=batch_size,
        device=device,
    )
    rows = [
        (
            task.name,
            metric,
            str(task.n),
            str(task.fewshot),
            _percent(value),
            _percent(task.standard_errors.get(metric)),
        )
        for task in result.tasks
        for metric, value in task.metrics.items()
    ]
    print(f"{result.model}, lm-evaluation-harness {result.versions['lm_eval']}")
    print(table(("task", "metric", "examples", "shots", "%", "standard error"), rows, right={2, 3, 4, 5}))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"
