"""Prepares a corpus: finds the files, reads them, cleans every utterance, orders by age, writes.

Read this file first: :func:`prepare` is the whole data path.
"""

from __future__ import annotations

import glob
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from babyssa.checks import check
from babyssa.console import progress, say
from babyssa.corpus.chat import read_chat
from babyssa.corpus.childes_db import has_childes_db_columns, read_childes_db
from babyssa.corpus.cleaning import CHILD, CHILD_ROLES, LONG_WORD, REASONS, CleaningRules, clean
from babyssa.corpus.lines import filled_lines, read_lines
from babyssa.corpus.text import read_dataset, read_text
from babyssa.corpus.utterances import Utterance
from babyssa.display import Column, Shown, Table
from babyssa.errors import ConfigError, DataError, nearest
from babyssa.files import atomic_write, check_overwrite, versions, write_json

CORPUS_FILE = "corpus.txt"
STATS_FILE = "stats.json"

Order = Literal["age", "source"]

_LOST_SHOWN = 20


class Reader(NamedTuple):
    """How files of one kind are recognised and read.

    Attributes
    ----------
    suffixes : tuple of str
        Suffixes of their names.
    read : callable
        Function from the path (or dataset id) to utterances.
    options : tuple of str
        The options of :func:`prepare` that `read` takes as keywords.
    """

    suffixes: tuple[str, ...]
    read: Callable[..., Iterator[Utterance]]
    options: tuple[str, ...] = ()


READERS = {
    # Also .parquet with the columns of childes-db; see kind_of.
    "childes-db": Reader((".csv", ".csv.gz"), read_childes_db, options=("age_unit",)),
    "chat": Reader((".cha", ".zip"), read_chat),
    "text": Reader((".txt", ".txt.gz"), read_text),
    "datasets": Reader((".jsonl", ".json", ".parquet", ".arrow"), read_dataset, options=("text_column",)),
}


class Source(NamedTuple):
    """A file or dataset to read, and its kind."""

    kind: str
    location: str


@dataclass(frozen=True)
class SourceStats:
    """Counts of one file or dataset."""

    name: str
    kind: str
    read: int
    kept: int
    tokens: int


@dataclass(frozen=True)
class CorpusStats(Shown):
    """What a corpus contains and what was left out; every utterance read is counted exactly once.

    Parameters
    ----------
    read, kept : int
        Utterances read, and sentences in the corpus.
    tokens : int
        Tokens in the corpus, separated by white space, end marks included.
    dropped : dict of str to int
        Utterances left out, by reason.
    roles : dict of str to int
        Utterances kept from transcripts, by the speaker's role.
    min_age, max_age : float or None
        Youngest and oldest age of a target child in the corpus, in days.
    unknown_age : int
        Sentences from sources without an age; they come last in an age-ordered corpus.
    lost : dict of str to str
        Files (or transcripts in an archive) from which nothing was kept, with the most frequent reason.
    sources : list of SourceStats
        Counts of each file or dataset, in reading order.
    order : str
        The corpus's order, "age" or "source".
    rules : CleaningRules
        The rules applied.
    """

    read: int
    kept: int
    tokens: int
    dropped: dict[str, int]
    roles: dict[str, int]
    min_age: float | None
    max_age: float | None
    unknown_age: int
    lost: dict[str, str]
    sources: list[SourceStats]
    order: str
    rules: CleaningRules

    def tables(self) -> Iterator[Table]:
        ages = ""
        if self.min_age is not None:
            ages = f"ages {self.min_age:,.0f} to {self.max_age:,.0f} days; {self.unknown_age:,} without age"
        columns = (Column("count", ","), Column("what"))
        kept = [(self.kept, "sentences"), (self.tokens, "tokens (by white space)")]
        yield Table(columns, kept, notes=(ages,) if ages else (), header=False)
        dropped = [(count, reason) for reason, count in self.dropped.items() if count]
        rows = [(self.read, "utterances read; left out:"), *dropped]
        yield Table(columns, rows, header=False)
        if self.lost:
            lost = [f"{name} ({reason})" for name, reason in islice(self.lost.items(), _LOST_SHOWN)]
            if len(self.lost) > _LOST_SHOWN:
                lost.append(f"and {len(self.lost) - _LOST_SHOWN:,} more, named in {STATS_FILE}")
            what = f"file{'s' * (len(self.lost) > 1)} from which nothing was kept:"
            yield Table(columns, [(len(self.lost), what), *((None, name) for name in lost)], header=False)


def prepare(
    sources: Sequence[str | Path] | str | Path,
    out: str | Path,
    *,
    kind: str = "auto",
    order: str = "age",
    text_column: str = "text",
    min_words: int = 3,
    max_age: float = 6.0,
    keep_unknown_age: bool = False,
    collection: str = "Eng-NA",
    keep_child: bool = False,
    age_unit: str | None = None,
    overwrite: bool = False,
) -> CorpusStats:
    """Read, clean, order and write a corpus; :func:`babyssa.prepare` explains the parameters."""
    check("order", order, Order)
    rules = CleaningRules(min_words, max_age, keep_unknown_age, collection, keep_child)
    out = Path(out)
    check_overwrite(out, [CORPUS_FILE, STATS_FILE], overwrite)

    dropped = Counter(dict.fromkeys(REASONS, 0))
    roles = Counter()
    labels = Counter()
    kept: list[tuple[Utterance, str]] = []
    source_stats = []
    lost: dict[str, str] = {}
    for source in progress(find_sources(sources, kind), "reading", unit="files"):
        read = 0
        first = len(kept)
        # For each file, or transcript in an archive: counts of the reasons, with None for what was kept.
        outcomes: dict[str, Counter] = {}
        for utterance in progress(
            _read(source, text_column, age_unit), Path(source.location).name, unit="utterances"
        ):
            read += 1
            if utterance.type is None and utterance.role is not None:
                labels[utterance.role] += 1
            sentence, reason = clean(utterance, rules)
            name = utterance.transcript if source.kind == "chat" else source.location
            outcomes.setdefault(name, Counter())[reason] += 1
            if reason == LONG_WORD and dropped[reason] < _LOST_SHOWN:
                say(f"{source.location}:{utterance.order}: left out: {LONG_WORD}")
            if sentence is None:
                dropped[reason] += 1
            else:
                kept.append((utterance, sentence))
                if utterance.role is not None:
                    roles[utterance.role] += 1
        tokens = sum(len(sentence.split(" ")) for _, sentence in kept[first:])
        source_stats.append(SourceStats(source.location, source.kind, read, len(kept) - first, tokens))
        lost |= {name: _main_reason(counts) for name, counts in outcomes.items() if None not in counts}
        if not read:
            lost[source.location] = "nothing in it"
    if labels:
        children = CHILD_ROLES & labels.keys()
        names = _some_of(["CHI" if name in children else name for name, _ in labels.most_common()])
        say(f"removed the speaker labels of {labels.total():,} lines of text ({names})")
        if children and not keep_child:
            say("children's lines are left out; --keep-child keeps them")

    ages = [utterance.age for utterance, _ in kept if utterance.age is not None]
    stats = CorpusStats(
        read=sum(source.read for source in source_stats),
        kept=len(kept),
        tokens=sum(source.tokens for source in source_stats),
        dropped=dict(dropped),
        roles=dict(roles.most_common()),
        min_age=min(ages, default=None),
        max_age=max(ages, default=None),
        unknown_age=len(kept) - len(ages),
        lost=lost,
        sources=source_stats,
        order=order,
        rules=rules,
    )
    if not kept:
        raise _nothing_kept(stats)
    if order == "age":
        kept.sort(key=lambda pair: age_order(pair[0]))
    with atomic_write(out / CORPUS_FILE) as file:
        file.writelines(f"{sentence}\n" for _, sentence in kept)
    write_json(out / STATS_FILE, {**asdict(stats), "versions": versions()})
    return stats


def read_utterances(
    sources: Sequence[str | Path] | str | Path,
    *,
    kind: str = "auto",
    text_column: str = "text",
    age_unit: str | None = None,
) -> Iterator[Utterance]:
    """Yield every utterance of `sources`, uncleaned, in reading order; see :func:`prepare`."""
    for source in find_sources(sources, kind):
        yield from _read(source, text_column, age_unit)


def read_transcript_sentences(path: Path) -> Iterator[str]:
    """Yield the sentences that :func:`prepare` would keep from a transcript or export, and report their number."""
    kept = read = 0
    for utterance in read_utterances(path):
        read += 1
        sentence, _ = clean(utterance, CleaningRules())
        if sentence is not None:
            kept += 1
            yield sentence
    say(f"{path}: read as {kind_of(path)}, like 'babyssa prepare': kept {kept:,} of {read:,} utterances")


def read_corpus(path: str | Path) -> list[str]:
    """Read the sentences of a corpus, in order.

    Parameters
    ----------
    path : path-like
        A text file with one sentence per line, or the folder that :func:`prepare` wrote. Empty lines are skipped
        and counted in a message.

    Raises
    ------
    DataError
        If it is missing, empty or not UTF-8, or is a transcript, an export or a dataset.
    """
    path = Path(path)
    sentences = [sentence for _, sentence in numbered_sentences(path)]
    if not sentences:
        raise DataError("the corpus is empty", path=corpus_file(path), remedy="it needs one sentence per line")
    return sentences


def numbered_sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and the sentence of each line of a corpus; see :func:`read_corpus`."""
    if path.is_dir():
        path = path / CORPUS_FILE
        if not path.is_file():
            raise DataError("no such file", path=path, remedy="prepare a corpus with 'babyssa prepare'")
    kind = kind_of(path)
    if path.is_file() and kind not in (None, "text"):
        raise DataError(
            f"is of kind {kind}, not a text with one sentence per line",
            path=path,
            remedy="run 'babyssa prepare' on it first",
        )
    for line, sentence in filled_lines(read_lines(path), path):
        yield line, sentence.strip()


def held_out_places(count: int, held_out: int, what: str = "sentences") -> list[int]:
    """Indices of the `held_out` sentences or documents, of `count`, that a run keeps out of training.

    They are evenly spaced, and the same for every run on a corpus, independent of the seed.

    Raises
    ------
    DataError
        If nothing would be left to train on.
    """
    if held_out <= 0:
        return []
    if held_out >= count:
        raise DataError(
            f"cannot hold out {held_out} {what} from a corpus of {count}",
            remedy="lower evaluation.held_out, or use a larger corpus",
        )
    return np.linspace(0, count - 1, held_out).astype(int).tolist()


def corpus_file(corpus: str | Path) -> Path:
    """The text file of a corpus given as a file or as a prepared folder."""
    return Path(corpus) / CORPUS_FILE if Path(corpus).is_dir() else Path(corpus)


def age_order(utterance: Utterance) -> tuple:
    """Sort key: age, transcript (numerically if it is a number), position; equal for all without an age."""
    if utterance.age is None:
        return (math.inf, math.inf, "", 0)
    number = int(utterance.transcript) if utterance.transcript.isdecimal() else math.inf
    return (utterance.age, number, utterance.transcript, utterance.order)


def find_sources(sources: Sequence[str | Path] | str | Path, kind: str = "auto") -> list[Source]:
    """Find the files behind paths, folders, globs and ids; a file named twice is read once.

    In a folder, "auto" takes the transcripts if there are any, else the plain texts, so that a licence or a
    readme beside transcripts is not read as speech.

    Raises
    ------
    DataError
        If a source is missing, of unknown kind, or contains nothing to read.
    ConfigError
        If `kind` is unknown, or there are no sources.
    """
    if kind != "auto" and kind not in READERS:
        raise ConfigError(f"unknown kind '{kind}'", remedy=nearest(kind, ["auto", *READERS]))
    if isinstance(sources, str | Path):
        sources = [sources]
    if not sources:
        raise ConfigError("no source given", remedy="name at least one file, folder or dataset")
    found = {}
    for location in sources:
        for source in _expand(str(location), kind):
            found.setdefault(Path(source.location).resolve(), source)
    return list(found.values())


def _expand(location: str, kind: str) -> Iterable[Source]:
    path = Path(location)
    if path.is_dir():
        return _in_folder(path, kind)
    if path.exists() or (kind == "datasets" and not glob.has_magic(location)):
        found = kind_of(path) if kind == "auto" else kind
        if found is None:
            raise DataError(
                "cannot tell what kind of file it is", path=path, remedy=f"pass --kind ({', '.join(READERS)})"
            )
        return [Source(found, location)]
    if glob.has_magic(location):
        return _matching(location, kind)
    raise DataError("no such file or folder", path=path, remedy="for a dataset of the hub, pass --kind datasets")


def _in_folder(folder: Path, kind: str) -> Iterable[Source]:
    saved = (folder / "dataset_dict.json").exists() or (folder / "dataset_info.json").exists()
    if kind == "datasets" or (kind == "auto" and saved):
        return [Source("datasets", str(folder))]
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    kinds = {path: kind_of(path) for path in paths}
    if kind == "auto":
        wanted = [path for path in paths if kinds[path] not in ("text", "datasets", None)]
        wanted = wanted or [path for path in paths if kinds[path] == "text"]
    else:
        # A text may have any name; transcripts beside a readme have the suffixes of transcripts.
        wanted = [path for path in paths if kinds[path] == kind]
        if kind == "text" or not wanted:
            wanted = [path for path in paths if kinds[path] in (kind, None)]
    if not wanted:
        of_kinds = [name for name in READERS if name != "datasets"] if kind == "auto" else [kind]
        endings = ", ".join(suffix for of_kind in of_kinds for suffix in READERS[of_kind].suffixes)
        remedy = "; --kind text reads every file in it" if kind == "auto" and paths else ""
        raise DataError("the folder contains nothing to read", path=folder, remedy=f"expected {endings}{remedy}")
    passed = [path.name for path in paths if path not in set(wanted)]
    if passed:
        files = "files" if len(passed) > 1 else "file"
        say(f"{folder}: skipped {len(passed)} {files} of other kinds ({_some_of(passed)})")
    return [Source(kinds[path] if kind == "auto" else kind, str(path)) for path in wanted]


def _matching(pattern: str, kind: str) -> Iterable[Source]:
    matches = sorted(glob.glob(pattern, recursive=True))
    found = []
    for match in matches:
        path = Path(match)
        if path.is_dir():
            found += _in_folder(path, kind)
        elif kind != "auto" or kind_of(path) is not None:
            found.append(Source(kind_of(path) if kind == "auto" else kind, match))
    if not found:
        what = "no file matches" if not matches else "no matching file has a known kind"
        raise DataError(what, path=pattern, remedy="check the pattern, or pass --kind")
    return found


def kind_of(path: Path) -> str | None:
    """The kind of a file by its suffix, and of a .parquet file by its columns; None if unknown."""
    name = path.name.lower()
    kind = next((kind for kind, reader in READERS.items() if name.endswith(reader.suffixes)), None)
    return "childes-db" if name.endswith(".parquet") and has_childes_db_columns(path) else kind


def _some_of(names: Sequence[str], shown: int = 3) -> str:
    return ", ".join(names[:shown]) + ", ..." * (len(names) > shown)


def _main_reason(counts: Counter) -> str:
    """The most frequent reason in a file, other than children's speech, which is left out of every file."""
    return next((reason for reason, _ in counts.most_common() if reason != CHILD), CHILD)


def _read(source: Source, text_column: str, age_unit: str | None) -> Iterator[Utterance]:
    reader = READERS[source.kind]
    options = {"text_column": text_column, "age_unit": age_unit}
    # A dataset may be a hub id.
    location = source.location if source.kind == "datasets" else Path(source.location)
    return reader.read(location, **{name: options[name] for name in reader.options})


def _nothing_kept(stats: CorpusStats) -> DataError:
    names = [source.name for source in stats.sources]
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in stats.dropped.items() if count)
    return DataError(
        f"nothing is left of {stats.read:,} utterances" + (f" ({reasons})" if reasons else ""),
        path=names[0] if len(names) == 1 else None,
        remedy="name other sources, or relax --min-words, --max-age, --collection or --keep-unknown-age",
    )
