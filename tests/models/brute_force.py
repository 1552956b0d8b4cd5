"""An independent scorer: one sentence at a time, one token at a time, no batching, nothing shared.

A script too: ``python tests/models/brute_force.py MODEL SUITE SENTENCES [ORDER] [METHOD]`` scores that many
sentences of a suite, spread over its paradigms, here and with ``babyssa.probe``, and prints the largest absolute
difference and the number of pairs that the two decide differently.
"""

import math
import sys

import torch


def score(model, tokenizer, sentence: str, method: str) -> float:
    """The score of one sentence by its definition (``holistic`` a mean, the others sums)."""
    values = token_scores(model, tokenizer, sentence, method)
    return math.fsum(values) / (len(values) if method == "holistic" else 1)


def token_scores(model, tokenizer, sentence: str, method: str) -> list[float]:
    """The log-probability of each scored token."""
    if method == "loglik":
        ids = tokenizer.encode(sentence, add_special_tokens=False)
        start = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        return [_log_probability(model, [start, *ids[:i]], -1, ids[i]) for i in range(len(ids))]
    encoded = tokenizer(sentence, return_special_tokens_mask=True)
    ids, special, words = encoded["input_ids"], encoded["special_tokens_mask"], encoded.word_ids()
    if method == "holistic":
        return [_log_probability(model, ids, i, ids[i]) for i in range(len(ids))]
    values = []
    for i in range(len(ids)):
        if special[i]:
            continue
        hidden = {i}
        if method == "pll-word-l2r":
            hidden |= {j for j in range(i + 1, len(ids)) if words[j] == words[i]}
        row = [tokenizer.mask_token_id if j in hidden else ids[j] for j in range(len(ids))]
        values.append(_log_probability(model, row, i, ids[i]))
    return values


@torch.no_grad()
def _log_probability(model, row: list[int], position: int, token: int) -> float:
    logits = model(torch.tensor([row])).logits[0, position].double()
    return (logits[token] - logits.logsumexp(0)).item()


def main(model: str, suite: str, sentences: str, order: str | None = None, method: str = "pll") -> None:
    """Compare both scorers, and print what they disagree in."""
    import numpy as np

    from babyssa import load_suite, probe
    from babyssa.models import load_model

    loaded = load_model(model, "cpu")
    whole = load_suite(suite, order)
    per_paradigm = max(1, round(int(sentences) / 2 / len(whole.paradigms)))
    part = whole.select(limit=per_paradigm)
    result = probe(loaded, part, method=method)
    largest, differently = 0.0, 0
    for paradigm in part.paradigms:
        expected = np.array(
            [
                [score(loaded.model, loaded.tokenizer, text, method) for text in (pair.good, pair.bad)]
                for pair in paradigm.pairs
            ]
        )
        found = result.scores[paradigm.name]
        largest = max(largest, float(np.abs(found - expected).max()))
        differently += int((np.sign(found[:, 0] - found[:, 1]) != np.sign(expected[:, 0] - expected[:, 1])).sum())
    print(f"{2 * part.n_pairs} sentences in {len(part.paradigms)} paradigms, {method}")
    print(f"largest absolute difference: {largest:.2e}")
    print(f"pairs decided differently: {differently}")


if __name__ == "__main__":
    main(*sys.argv[1:])
