"""Pushes a run to the Hugging Face hub: its export, a model card, and its checkpoints as revisions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.utils import validate_repo_id

from babyssa.comparison.results import StoredResult, find_results, read_result
from babyssa.console import say
from babyssa.display import Column, Shown, Table
from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.models.loading import load_model, weights_sha256
from babyssa.models.run_config import CHECKPOINTS, list_checkpoints, read_identity
from babyssa.sharing.card import model_card
from babyssa.sharing.export import export

CARD = "README.md"


@dataclass(frozen=True)
class Push(Shown):
    """What went to the hub, or would go.

    Parameters
    ----------
    repo : str
        Owner and name.
    files : dict of str to dict of str to int
        The size in bytes of every file, by revision.
    card : str
        The model card of the main revision.
    dry_run : bool
        Whether nothing was sent.
    """

    repo: str
    files: dict[str, dict[str, int]]
    card: str
    dry_run: bool

    def tables(self) -> Iterator[Table]:
        rows = [(revision, name, size) for revision, files in self.files.items() for name, size in files.items()]
        title = f"{'would go' if self.dry_run else 'went'} to {self.repo}"
        yield Table((Column("revision"), Column("file"), Column("bytes", ",")), rows, title)


def push(
    run: Path,
    repo: str,
    *,
    results: Iterable[str | Path] = (),
    out: Path | None = None,
    license_name: str,
    private: bool = False,
    dry_run: bool = False,
    endpoint: str | None = None,
) -> Push:
    """Export a run and its checkpoints by words, and send them; :func:`babyssa.push` explains the parameters."""
    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise ConfigError(f"'{repo}' is no name of a repository: {error}", remedy="owner/name") from None
    revisions = {"main": run}
    for folder in list_checkpoints(run):
        if folder.parent.name == CHECKPOINTS and folder.name.startswith("words-"):
            revisions[f"chck_{folder.name.removeprefix('words-')}"] = folder
    with ExitStack() as held:
        place = Path(out if out is not None else held.enter_context(tempfile.TemporaryDirectory()))
        for revision, folder in revisions.items():
            say(f"exporting {folder} as {revision}")
            loaded = load_model(folder, "cpu")
            own = _own_results(results, folder, weights_sha256(loaded.model)) if revision == "main" else []
            exported = export(loaded, place / revision)
            card = model_card(loaded, repo, exported.needs_code, own, license_name)
            card.save(place / revision / CARD)
        files = {r: _sizes(place / r) for r in revisions}
        text = (place / "main" / CARD).read_text(encoding="utf-8")
        if not dry_run:
            _send(HfApi(endpoint=endpoint), repo, {r: place / r for r in revisions}, private)
    return Push(repo, files, text, dry_run)


def _own_results(folders: Iterable[str | Path], run: Path, sha256: str) -> list[StoredResult]:
    """Probe results of the model, followed by those of other seeds of its variant.

    Raises
    ------
    DataError
        If one is of another model.
    """
    found = [read_result(folder) for folder in find_results(folders)] if folders else []
    known = read_identity(run)
    for result in found:
        if result.model_sha256 != sha256 and (
            result.variant != known.get("variant") or result.seed in (None, known.get("seed"))
        ):
            raise DataError(
                f"is a result of another model ('{result.variant}', seed {result.seed})",
                path=result.folder,
                remedy="give results of this run, and of other seeds of its variant",
            )
    return sorted(found, key=lambda result: result.model_sha256 != sha256)


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}


def _send(api: HfApi, repo: str, folders: dict[str, Path], private: bool) -> None:
    """Create the repository where there is none, and one commit in each revision."""
    try:
        api.create_repo(repo, private=private, exist_ok=True)
        for revision, folder in folders.items():
            if revision != "main":
                api.create_branch(repo, branch=revision, exist_ok=True)
            say(f"sending {revision}")
            api.upload_folder(
                repo_id=repo, folder_path=folder, revision=revision, commit_message=f"Upload {revision}"
            )
    except (HfHubHTTPError, OfflineModeIsEnabled, OSError) as error:
        lines: Sequence[str] = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"the hub did not take {repo}: {lines[0]}", remedy="log in with 'hf auth login', and check the name"
        ) from error
