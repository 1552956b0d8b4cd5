"""Uses exported checkpoints as somebody without this package would: a program of its own.

    python outside.py FOLDER...

FOLDER is an exported checkpoint beside FOLDER.npz, which has input_ids, attention_mask and the logits that are
expected. Prints one JSON object for each. Needs torch, transformers and accelerate only.
"""

import json
import logging
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

if "babyssa" in sys.modules:
    raise RuntimeError("babyssa is imported")
logging.disable(logging.WARNING)
transformers.utils.logging.disable_progress_bar()


def check(folder: Path) -> dict:
    """What works, and how far the logits are from those that are expected."""
    expected = dict(np.load(f"{folder}.npz"))
    inputs = {key: torch.tensor(expected[key]) for key in ("input_ids", "attention_mask")}
    real = inputs["attention_mask"].bool()
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    causal = architecture.endswith(("CausalLM", "LMHeadModel"))
    auto = AutoModelForCausalLM if causal else AutoModelForMaskedLM
    scored = architecture.startswith("Scored")
    # Before anything is trusted: transformers remembers what was.
    refused = scored and fails(lambda: auto.from_pretrained(folder, trust_remote_code=False))

    def difference(model) -> float:
        with torch.no_grad():
            logits = model.eval()(**inputs).logits
        return float((logits[real] - torch.tensor(expected["logits"])[real]).abs().max())

    model = auto.from_pretrained(folder, trust_remote_code=True)
    base = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    found = {
        "model": folder.name,
        "transformers": transformers.__version__,
        "class": type(model).__name__,
        "difference": difference(model),
        "base": bool(torch.isfinite(base(**inputs).last_hidden_state).all()),
    }
    if causal:
        prompt = {key: value[:, :3] for key, value in inputs.items()}
        settings = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 1, "eos_token_id": None}
        cached = model.generate(**prompt, use_cache=True, **settings)
        found["generate"] = torch.equal(cached, model.generate(**prompt, use_cache=False, **settings))
    if (folder / "tokenizer.json").is_file():
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
        found["tokenizer"] = tokenizer("The dog sees a cat .")["input_ids"] == expected["dog"].tolist()
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(Path(scratch) / "again")
        again = auto.from_pretrained(Path(scratch) / "again", trust_remote_code=True)
        found["reload"] = difference(again)
        found["fine-tune"] = fine_tune(again, auto, inputs, scratch)
    if scored:
        stock = getattr(transformers, architecture.removeprefix("Scored"))
        other = {"trust_remote_code": True, "attn_implementation": "eager"}
        found["refuses"] = (
            refused and refuses(folder, stock) and fails(lambda: auto.from_pretrained(folder, **other))
        )
    return found


def fine_tune(model, auto, inputs, scratch) -> bool:
    """Whether one step of Trainer changes the weights, the scoring's among them, and its checkpoint loads."""
    rows = [
        {"input_ids": ids, "attention_mask": mask, "labels": ids}
        for ids, mask in zip(*inputs.values())  # noqa: B905
    ]
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    settings = transformers.TrainingArguments(
        output_dir=scratch, max_steps=1, learning_rate=0.01, report_to=[], use_cpu=True, disable_tqdm=True
    )
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=rows)
    trainer.train()
    trainer.save_model(Path(scratch) / "tuned")
    tuned = auto.from_pretrained(Path(scratch) / "tuned", trust_remote_code=True)
    return all(
        not torch.equal(value, before[name]) and torch.equal(value, dict(model.named_parameters())[name])
        for name, value in tuned.named_parameters()
        if "raw_" in name or name.endswith(("word_embeddings.weight", "embed_tokens.weight", "wte.weight"))
    )


def fails(load) -> bool:
    """Whether a way to load a model fails."""
    try:
        load()
    except Exception:
        return True
    return False


def refuses(folder: Path, stock: type) -> bool:
    """Whether stock classes fail, whatever attention they are told to use; nothing of `folder` is trusted."""
    ways = [{}, {"attn_implementation": "sdpa"}, {"attn_implementation": "eager"}]
    return all(fails(lambda way=way: stock.from_pretrained(folder, **way)) for way in ways)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with redirect_stdout(sys.stderr):
            found = check(Path(name))
        print(json.dumps(found), flush=True)
