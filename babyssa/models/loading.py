"""Loading a masked or causal language model with the tokenizer that fits it."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from babyssa.attention import register_checkpoint
from babyssa.attention.adapter import longest_sequence
from babyssa.console import quiet_transformers, say
from babyssa.corpus import load_tokenizer, tokenizer_sha256
from babyssa.corpus.tokenizer import VOCABULARIES, check_revision, may_be_hub_id
from babyssa.errors import BabySSAError, ConfigError, ModelError
from babyssa.files import check_checksums, read_yaml, tensors_sha256
from babyssa.models.products import multiplying

Kind = Literal["masked", "causal"]
Precision = Literal["float32", "bfloat16"]

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")


@dataclass(frozen=True)
class ModelSource:
    """What :func:`load_model` takes: a model folder or hub id, a revision of it, and whether its code may run."""

    name: str
    revision: str | None = None
    trust_remote_code: bool = False

    def __str__(self) -> str:
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


@dataclass(frozen=True)
class LoadedModel:
    """A language model, its tokenizer, and what kind of model it is.

    ``name`` is the folder or hub id it came from, with ``@REVISION`` if one was asked for; ``max_tokens`` is the
    longest sequence it takes, special tokens included (None if it has no limit).
    """

    model: Any
    tokenizer: Any
    kind: Kind
    name: str
    max_tokens: int | None

    @property
    def device(self) -> torch.device:
        """Where the model's parameters are."""
        return next(self.model.parameters()).device


def load_model(
    name: str | Path,
    device: str | torch.device | None = None,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> LoadedModel:
    """Load any masked or causal language model that transformers can load, in float32 and in eval mode.

    Weights are read from safetensors only, no code that comes with a model is run unless it is trusted, and a
    folder with checksums.json, such as a run folder, is checked against it.

    Parameters
    ----------
    name : str or Path
        A folder in save_pretrained format (with the tokenizer in it), or a hub id.
    device : str or torch.device, optional
        Where to put it; a GPU if there is one, else the CPU.
    revision : str, optional
        Branch, tag or commit of a hub id; its main branch by default.
    trust_remote_code : bool
        Run the Python code that comes with the model, which can do whatever you can.

    Returns
    -------
    LoadedModel

    Raises
    ------
    ModelError
        If the folder is missing or incomplete, the checkpoint lacks weights, the model is neither masked nor
        causal, its weights are a pickle, it needs code that is not trusted, or the tokenizer does not fit it.
    DamageError
        If a file is not what the folder's checksums say that it was.
    ConfigError
        If there is no such device, or a folder is given with a revision.
    """
    folder = Path(name)
    check_revision(name, revision)
    if folder.is_dir():
        check_checksums(folder)
        _check_folder(folder)
    elif folder.exists() or not may_be_hub_id(str(name)):
        what = "is a file, not a model folder" if folder.exists() else "no such model folder"
        raise ModelError(what, path=folder, remedy="pass a folder written by save_pretrained, or a hub id")
    hub = {"revision": revision, "trust_remote_code": trust_remote_code}
    with quiet_transformers():
        _check_code(name, _attempt(name, register_checkpoint, name, revision), trust_remote_code)
        config = _attempt(name, AutoConfig.from_pretrained, name, **hub)
        kind = _kind_of(config, name)
        tokenizer = load_tokenizer(name, **hub)
        auto = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
        model, report = _attempt(
            name,
            auto.from_pretrained,
            name,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            use_safetensors=True,
            **hub,
        )
    _check_tokenizer(folder, tokenizer)
    missing = sorted(report["missing_keys"])
    if missing:
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise ModelError(
            f"the checkpoint lacks {len(missing)} of the model's weights ({shown})",
            path=name,
            remedy="save the model with its language-model head",
        )
    try:
        model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"cannot use device '{device}': {str(error).splitlines()[0]}", remedy="use cpu"
        ) from None
    model.eval()
    return as_loaded((model, tokenizer), name=str(ModelSource(str(name), revision)))


def as_loaded(model: Any, *, name: str | None = None, device: str | torch.device | None = None) -> LoadedModel:
    """A LoadedModel from a LoadedModel, a (model, tokenizer) pair in memory, a folder or hub id, or a ModelSource.

    A model in memory is used as it is, where it is: neither its device nor its mode is changed.

    Raises
    ------
    ModelError
        As :func:`load_model`.
    """
    if isinstance(model, LoadedModel):
        return model
    if isinstance(model, (str, Path)):
        return load_model(model, device)
    if isinstance(model, ModelSource):
        return load_model(model.name, device, revision=model.revision, trust_remote_code=model.trust_remote_code)
    if not isinstance(model, tuple | list) or len(model) != 2 or not hasattr(model[0], "config"):
        expected = "expected a model folder, a hub id or a pair (model, tokenizer)"
        raise ConfigError(f"model is {reprlib.repr(model)}, {expected}")
    model, tokenizer = model
    name = name or model.config.name_or_path or type(model).__name__
    kind = _kind_of(model.config, name, type(model).__name__)
    embeddings = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > embeddings:
        raise ModelError(
            f"the tokenizer has {len(tokenizer)} tokens but the model only {embeddings} embeddings",
            path=name,
            remedy="use the tokenizer that the model was trained with",
        )
    if kind == "masked" and tokenizer.mask_token_id is None:
        raise ModelError("the tokenizer has no mask token", path=name, remedy="set its mask_token and save it")
    return LoadedModel(model, tokenizer, kind, name, _max_tokens(model, tokenizer))


def weights_sha256(model: nn.Module) -> str:
    """Hash of a model's state dict, the same in memory and from any file."""
    return tensors_sha256(model.state_dict())


@contextmanager
def evaluating(model: nn.Module, precision: Precision = "float32") -> Iterator[None]:
    """Eval mode, no gradients, no autocast but to bfloat16 if asked; every module's mode is put back after it."""
    training = [module for module in model.modules() if module.training]
    device = next(model.parameters()).device.type
    model.eval()
    try:
        # Not inference_mode: a tensor that a module caches there could not be trained with afterwards.
        with (
            torch.no_grad(),
            torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"),
            multiplying() if device == "cpu" else nullcontext(),
        ):
            yield
    finally:
        for module in training:
            module.training = True


def _check_code(name: str | Path, config: dict[str, Any], trusted: bool) -> None:
    """Say whether the code that comes with a model runs; raise ModelError if it is needed and not trusted."""
    model_type = config.get("model_type")
    known = model_type in CONFIG_MAPPING
    places = [place for place in (config.get("auto_map") or {}).values() if isinstance(place, str)]
    # Where this package has the class, it is the one that is used.
    if not places or (known and not CONFIG_MAPPING[model_type].__module__.startswith("transformers.")):
        return
    files = ", ".join(sorted({f"{place.rpartition('.')[0]}.py" for place in places}))
    if trusted:
        say(f"{name}: running the code that comes with it ({files}), which can do whatever you can")
    elif known:
        say(f"{name}: the code that comes with it ({files}) does not run without --trust-remote-code")
    else:
        raise ModelError(
            f"needs the code that comes with it ({files}), which could do whatever you can",
            path=name,
            remedy="read it, and if you trust it, pass --trust-remote-code",
        )


def _kind_of(config: Any, name: str | Path, architecture: str | None = None) -> Kind:
    """Masked or causal: by the class that was saved, its own code, or what transformers has for the model type."""
    saved = [architecture] if architecture else list(getattr(config, "architectures", None) or [])
    masked, causal = (
        {name for names in mapping.values() for name in ([names] if isinstance(names, str) else names)}
        for mapping in (MODEL_FOR_MASKED_LM_MAPPING_NAMES, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    )
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError("an encoder-decoder is neither a masked nor a causal model", path=name)
    for class_name in saved:
        if class_name.endswith("ForMaskedLM") or (class_name in masked and class_name not in causal):
            return "masked"
        if class_name.endswith(("ForCausalLM", "LMHeadModel")) or class_name in causal:
            return "causal"
    for kind, auto in (("masked", "AutoModelForMaskedLM"), ("causal", "AutoModelForCausalLM")):
        if auto in (getattr(config, "auto_map", None) or {}):
            return kind
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False):
        return "masked"
    if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "causal"
    raise ModelError(f"a '{config.model_type}' model is neither a masked nor a causal language model", path=name)


def _max_tokens(model: nn.Module, tokenizer: Any) -> int | None:
    """The longest sequence that both the model's positions and the tokenizer's own limit allow."""
    limits = [
        limit
        for limit in (longest_sequence(model), tokenizer.model_max_length)
        if limit is not None and 0 < limit < 10**9
    ]
    return int(min(limits)) if limits else None


def _check_folder(folder: Path) -> None:
    if not any((folder / name).is_file() for name in _WEIGHTS):
        pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
        if pickles:
            raise ModelError(
                "the weights are a pickle, which can run any code when it is opened",
                path=folder / pickles[0],
                remedy="where you trust it, load it with transformers, and save_pretrained writes safetensors",
            )
    for what, names in (("config.json", ("config.json",)), ("weights", _WEIGHTS), ("tokenizer", VOCABULARIES)):
        if not any(any(folder.glob(pattern)) for pattern in names):
            label = what if what in names else f"{what} ({names[0]})"
            raise ModelError(
                f"incomplete model folder: no {label}",
                path=folder,
                remedy="save model and tokenizer with save_pretrained",
            )


def _check_tokenizer(folder: Path, tokenizer: Any) -> None:
    """Raise ModelError if a run folder of this package holds another tokenizer than its model was trained with."""
    config = folder / "config.yaml"
    if not config.is_file():
        return
    facts = read_yaml(config).values.get("facts")
    trained_with = facts.get("tokenizer_sha256") if isinstance(facts, dict) else None
    if trained_with is not None and tokenizer_sha256(tokenizer) != trained_with:
        raise ModelError(
            "is not the tokenizer that the model was trained with",
            path=folder / "tokenizer.json",
            remedy="put back the one with the tokenizer_sha256 that config.yaml names",
        )


def _attempt(name: str | Path, function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a loading function; whatever it raises becomes one line that names the model."""
    try:
        return function(*arguments, **options)
    except BabySSAError as error:
        raise ModelError(error.what, path=Path(name) / "config.json", remedy=error.remedy) from None
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = lines[0] if lines else type(error).__name__
        if not Path(name).exists() and isinstance(error, OSError):
            raise ModelError(
                f"no such model folder, and the hub does not give it: {said}",
                path=name,
                remedy="check the name, or the network",
            ) from error
        if "ignore_mismatched_sizes" in said:
            said = "config.json does not describe the weights: shapes differ"
        raise ModelError(
            f"cannot be loaded: {said}", path=name, remedy="check that it is a complete transformers model"
        ) from error
