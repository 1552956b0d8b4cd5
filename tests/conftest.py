"""Fixtures shared by all tests."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tables as wide as they like to be.
os.environ["COLUMNS"] = "300"
# Tests run beside each other (pytest -n); threads of one would wait for those of another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Bytes of runs are compared, also between different numbers of threads: one library multiplies in all of them.
os.environ.setdefault("BABYSSA_CPU_PRODUCTS", "mkl" if torch.backends.mkl.is_available() else "blas")

REPOSITORY = Path(__file__).resolve().parent.parent


# A tiny corpus; its tokenizer is made as users make theirs.
SENTENCES = [
    "the dog sees a cat .",
    "where is the ball ?",
    "you want the red ball , don't you ?",
    "look !",
    "the dogs in the garden are big .",
    "mommy gave the baby a cookie .",
    "do you see him ?",
    "he washed himself .",
    "that's a nice big truck that you have there , isn't it ?",
    "give me the book .",
] * 12


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora and suites, which are not part of the repository."""
    folder = Path(os.environ.get("BABYSSA_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}; set BABYSSA_SHARED to the folder that has it")
    return folder


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """The user's own cache is left alone."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["BABYSSA_CACHE"] = str(folder)
    return folder


@pytest.fixture
def run_babyssa(capsys):
    """Run one command line in this process; returns (exit status, stdout, stderr)."""
    from babyssa.cli import main

    def run(*argv) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tokenizer_folder(corpus, tmp_path_factory):
    from babyssa.corpus import train_tokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(corpus, folder, vocab_size=350)
    return folder


@pytest.fixture(scope="session")
def tokenizer(tokenizer_folder):
    from babyssa.corpus import load_tokenizer

    return load_tokenizer(tokenizer_folder)


@pytest.fixture(scope="session")
def decoder_tokenizer(tokenizer_folder):
    """The tokenizer as decoders use it."""
    from babyssa.corpus import load_tokenizer
    from babyssa.decoder import causal_tokenizer

    tokenizer = causal_tokenizer(load_tokenizer(tokenizer_folder))
    tokenizer.model_max_length = 24
    return tokenizer


@pytest.fixture
def decoder(decoder_tokenizer):
    """Makes an untrained decoder whose logits are far from uniform."""
    from babyssa.decoder import DecoderSize, build_decoder

    size = DecoderSize(
        layers=2,
        heads=4,
        key_value_heads=2,
        hidden_size=32,
        feed_forward_size=48,
        max_length=24,
        initializer_range=0.3,
    )

    def make(variant="softmax", **changes):
        return build_decoder(size, decoder_tokenizer, variant=variant, **changes).eval()

    return make


@pytest.fixture
def logits():
    """The logits (length, vocabulary) of one row of token ids, all at once and without a cache."""
    import torch

    def of(model, ids):
        with torch.no_grad():
            return model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0]

    return of


@pytest.fixture(scope="session")
def some_sentences():
    """Makes random sentences of given lengths, between bos 3 and eos 4, of the ids 5 to 199."""
    from babyssa.corpus import Sentences

    def make(lengths, seed=0):
        generator = np.random.default_rng(seed)
        return Sentences.of([[3, *generator.integers(5, 200, length).tolist(), 4] for length in lengths])

    return make


# Tiny real models and tokenizers.
TEXT = [
    "the dog on the mat is big .",
    "the dogs on the mat are big .",
    "where does the smartest horse sleep ?",
    "don't you want another cookie ?",
    "look at this purple thing .",
]


def load_module(path: Path):
    """A module beside the tests, which pytest does not collect."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def brute_force():
    """The module tests/models/brute_force.py."""
    return load_module(Path(__file__).parent / "models" / "brute_force.py")


@pytest.fixture(scope="session")
def definition():
    """A function (scoring, query, key, mask, scaling) to the weights (batch, heads, query, key) by definition."""
    return load_module(Path(__file__).parent / "attention" / "definitions.py").weights


def make_tokenizer(alphabet: bool = True, frame: bool = True, text=TEXT, size: int = 320, **options):
    """A lower-casing byte-level BPE tokenizer; by default with few merges: most words have several tokens."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(unk_token=None))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size if alphabet else 80,
        special_tokens=["<mask>", "<pad>", "<unk>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [],
        show_progress=False,
    )
    backend.train_from_iterator(text, trainer)
    if frame:
        backend.post_processor = processors.RobertaProcessing(("</s>", 4), ("<s>", 3))
    names = {"mask_token": "<mask>", "pad_token": "<pad>", "unk_token": "<unk>"}
    names |= {"bos_token": "<s>", "eos_token": "</s>"} | options
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def make_masked(tokenizer, seed: int = 0, **options):
    """A randomly initialised RobertaForMaskedLM for sequences of 40 tokens, with distinct predictions."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM

    config = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 42,
        "pad_token_id": 1,
        "bos_token_id": 3,
        "eos_token_id": 4,
        "initializer_range": 0.3,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return RobertaForMaskedLM(RobertaConfig(**config | options)).eval()


def make_causal(tokenizer, seed: int = 0):
    """A randomly initialised GPT2LMHeadModel for sequences of 40 tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=40,
        bos_token_id=3,
        eos_token_id=4,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="session")
def masked():
    """A masked model and its tokenizer, in memory."""
    tokenizer = make_tokenizer()
    return make_masked(tokenizer), tokenizer


@pytest.fixture(scope="session")
def causal():
    """A causal model and its tokenizer, in memory."""
    tokenizer = make_tokenizer(frame=False)
    return make_causal(tokenizer), tokenizer


@pytest.fixture(scope="session")
def masked_folder(masked, tmp_path_factory):
    """The masked model, saved; do not change it."""
    return save(*masked, tmp_path_factory.mktemp("masked") / "tiny-masked")


@pytest.fixture(scope="session")
def causal_folder(causal, tmp_path_factory):
    """The causal model, saved; do not change it."""
    return save(*causal, tmp_path_factory.mktemp("causal") / "tiny-causal")


def save(model, tokenizer, folder: Path) -> Path:
    """Write model and tokenizer into `folder`."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def make():
    """The functions above, for tests that need other models."""
    from types import SimpleNamespace

    return SimpleNamespace(tokenizer=make_tokenizer, masked=make_masked, causal=make_causal, save=save)
