"""Uses exported models in several versions of transformers, each in an environment without babyssa.

    python benchmarks/exports.py --out exports 4.51.3 4.57.6 5.0.0 5.12.0 5.24.0

Prints a table for docs/sharing.md. Environments that exist in --out are used again.
"""

import argparse
import json
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import torch

import babyssa
from babyssa.attention import scorings
from babyssa.corpus import load_tokenizer, train_tokenizer
from babyssa.decoder import DecoderSize, build_decoder, causal_tokenizer
from babyssa.encoder import EncoderSize, build_encoder

OUTSIDE = Path(__file__).parent.parent / "tests" / "sharing" / "outside.py"
MIXED = {"groups": [["softmax", 0.5], [{"name": "ssa", "n": 2.0}, 0.5]]}
SIZE = {"layers": 2, "heads": 4, "hidden_size": 64, "feed_forward_size": 128, "max_length": 64}


def write_models(out: Path) -> list[Path]:
    """Export encoders and decoders with learned numbers away from their initial values, beside their logits."""
    babyssa.generate_sample(out=out / "sample.csv", utterances=2000, overwrite=True)
    babyssa.prepare([out / "sample.csv"], out=out / "corpus", overwrite=True)
    train_tokenizer(out / "corpus", out / "tokenizer", vocab_size=1000, overwrite=True)
    folders = []
    for variant in ("softmax", "ssa", "mixed"):
        scoring = MIXED if variant == "mixed" else None
        tokenizer = load_tokenizer(out / "tokenizer")
        encoder = build_encoder(EncoderSize(**SIZE), tokenizer, variant=variant, scoring=scoring)
        folders.append(write(out / f"encoder-{variant}", encoder, tokenizer))
        tokenizer = causal_tokenizer(load_tokenizer(out / "tokenizer"))
        decoder = build_decoder(
            DecoderSize(**SIZE, key_value_heads=2), tokenizer, variant=variant, scoring=scoring
        )
        folders.append(write(out / f"decoder-{variant}", decoder, tokenizer))
    return folders


def write(folder: Path, model, tokenizer) -> Path:
    with torch.no_grad():
        for module in scorings(model).values():
            for number in module.parameters():
                number.add_(torch.linspace(0.1, 0.9, len(number)))
    babyssa.export((model.eval(), tokenizer), out=folder, overwrite=True)
    ids = torch.randint(5, len(tokenizer), (4, 20), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    ids[1, 12:], inputs["attention_mask"][1, 12:] = tokenizer.pad_token_id or 0, 0
    with torch.no_grad():
        logits = model(**inputs).logits
    np.savez(f"{folder}.npz", logits=logits, dog=tokenizer("The dog sees a cat .")["input_ids"], **inputs)
    return folder


def python_with(version: str, out: Path) -> Path:
    """The Python of an environment with a version of transformers."""
    folder = out / f"transformers-{version}"
    python = folder / "bin" / "python"
    if not python.is_file():
        venv.create(folder, with_pip=True)
        torch_version = torch.__version__.partition("+")[0]
        packages = [f"torch=={torch_version}", f"transformers=={version}", "accelerate"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("exports"))
    arguments = parser.parse_args()
    out = arguments.out.absolute()
    folders = write_models(out)
    print("| transformers | model | loads | largest difference | generate | reload | fine-tune | refuses |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for version in arguments.versions:
        command = [python_with(version, out), OUTSIDE, *folders]
        done = subprocess.run(command, capture_output=True, text=True, cwd=out)
        if done.returncode:
            sys.exit(done.stderr)
        for line in done.stdout.splitlines():
            found = json.loads(line)
            cells = [
                version,
                found["model"].replace("-", ", "),
                yes(found["base"] and found["tokenizer"]),
                f"{found['difference']:.1g}",
                yes(found.get("generate")),
                yes(found["reload"] <= 1e-5),
                yes(found["fine-tune"]),
                yes(found.get("refuses")),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


def yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "NO"


if __name__ == "__main__":
    main()
