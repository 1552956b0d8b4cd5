"""Verbs that make data: a corpus, its tokenizer, the sample corpus, the suite of minimal pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from babyssa.checks import checked
from babyssa.console import say
from babyssa.display import Column, Shown, Table

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from babyssa.corpus import CorpusStats
    from babyssa.language.sample import SampleStats
    from babyssa.language.suite import ParadigmSummary


@dataclass(frozen=True)
class GeneratedSuite(Shown):
    """The paradigms of a suite that was generated, each with its file and its number of pairs."""

    paradigms: tuple[ParadigmSummary, ...]

    def tables(self) -> Iterator[Table]:
        columns = (Column("paradigm"), Column("phenomenon", hidden=True), Column("pairs", ","))
        yield Table(columns, [(p.name, p.phenomenon, p.pairs) for p in self.paradigms])


@checked
def prepare(
    sources: Iterable[str] | str,
    *,
    out: Path,
    kind: Literal["auto", "childes-db", "chat", "text", "datasets"] = "auto",
    order: Literal["age", "source"] = "age",
    min_words: int = 3,
    max_age: float = 6.0,
    keep_unknown_age: bool = False,
    collection: str = "Eng-NA",
    keep_child: bool = False,
    age_unit: Literal["days", "months", "years"] | None = None,
    text_column: str = "text",
    overwrite: bool = False,
) -> CorpusStats:
    """Read transcripts or text, clean every utterance, order them by the child's age, and write a corpus.

    Writes OUT/corpus.txt, one sentence per line, and OUT/stats.json, which counts every utterance that was
    left out under its reason.

    Parameters
    ----------
    sources : iterable of path-like
        files, folders, globs, zips of CHAT transcripts, or datasets
    out : path-like
        folder to write
    kind : str
        what the sources are; auto goes by the end of their names (a dataset of the hub needs it); text reads every
        file of a folder, whatever its name
    order : str
        age: youngest child first, sentences without an age last; source: as read
    min_words : int
        fewest words of a sentence, its end mark included
    max_age : float
        oldest age of the child, in years (transcripts)
    keep_unknown_age : bool
        keep transcripts that do not give the age of a target child; most of them are talk among adults
    collection : str
        keep only this CHILDES collection, or any (childes-db)
    keep_child : bool
        keep what children say, which is otherwise left out and counted
    age_unit : str, optional
        unit of target_child_age (childes-db; default: days, unless no age is over 216)
    text_column : str
        column of text (datasets)
    overwrite : bool
        replace an earlier corpus

    Returns
    -------
    CorpusStats

    Raises
    ------
    DataError
        If a source is missing or broken, or nothing is kept. An earlier corpus stays as it was.
    OutputExistsError
        If `out` holds a corpus and `overwrite` is false.

    Examples
    --------
    babyssa prepare childes_db_csv/ --out corpora/childes
    babyssa prepare Bates.zip Bernstein/*.cha --out corpora/chat --min-words 4
    babyssa prepare aochildes.txt --out corpora/published
    babyssa prepare some-org/some-dataset --kind datasets --out corpora/hub
    """
    from babyssa.corpus.preparation import prepare

    stats = prepare(
        sources,
        out,
        kind=kind,
        order=order,
        text_column=text_column,
        min_words=min_words,
        max_age=max_age,
        keep_unknown_age=keep_unknown_age,
        collection=collection,
        keep_child=keep_child,
        age_unit=age_unit,
        overwrite=overwrite,
    )
    say(f"wrote {out}/corpus.txt and {out}/stats.json")
    return stats


@checked
def train_tokenizer(
    corpus: Path,
    *,
    out: Path,
    vocab_size: int = 8192,
    min_frequency: int = 2,
    lowercase: bool = True,
    overwrite: bool = False,
) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer, and write it as a folder that transformers loads.

    The result depends on the corpus and the settings only, not on threads or time. A sentence with a word that is
    too long for speech is left out, and named on stderr.

    Parameters
    ----------
    corpus : path-like
        a prepared folder, or a text file with one sentence per line
    out : path-like
        folder to write
    vocab_size : int
        largest vocabulary, special tokens and bytes included; a small corpus may give a smaller one
    min_frequency : int
        fewest times that a pair must occur to be merged
    lowercase : bool
        lower-case all text; --lowercase false keeps case
    overwrite : bool
        replace an earlier tokenizer

    Returns
    -------
    transformers.PreTrainedTokenizerFast

    Raises
    ------
    DataError
        If the corpus is missing, empty or not UTF-8.
    ConfigError
        If `vocab_size` has no room for special tokens and bytes, or `min_frequency` is below 1.
    OutputExistsError
        If `out` holds a tokenizer and `overwrite` is false.

    Examples
    --------
    babyssa tokenizer corpora/childes --out tokenizers/childes
    babyssa tokenizer corpus.txt --out tokenizers/small --vocab-size 2048
    """
    from babyssa.corpus.tokenizer import train_tokenizer

    trained = train_tokenizer(
        corpus,
        out,
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        lowercase=lowercase,
        overwrite=overwrite,
    )
    say(f"wrote {out}/tokenizer.json and {out}/tokenizer_config.json: {len(trained):,} tokens in the vocabulary")
    return trained


@checked
def generate_sample(*, out: Path, utterances: int = 30000, seed: int = 0, overwrite: bool = False) -> SampleStats:
    """Generate a sample corpus of child-directed speech, as a childes-db export (.csv or .csv.gz).

    The packaged sample, which the demo trains on, is what the default settings make. The same settings give
    the same bytes.

    Parameters
    ----------
    out : path-like
        file to write, compressed if it ends in .gz
    utterances : int
        how many utterances the adults say; the children's are added to them
    seed : int
        seed of everything that is drawn
    overwrite : bool
        replace an earlier file

    Returns
    -------
    SampleStats

    Raises
    ------
    OutputExistsError
        If `out` exists and `overwrite` is false.
    ConfigError
        If there are too few utterances for every recording to have one.

    Examples
    --------
    babyssa sample --out sample.csv.gz
    babyssa sample --out other.csv --utterances 100000 --seed 1
    babyssa prepare other.csv --out corpora/other
    """
    from babyssa.language.sample import generate_sample

    stats = generate_sample(out, utterances=utterances, seed=seed, overwrite=overwrite)
    say(f"wrote {out}")
    return stats


@checked
def generate_suite(
    *,
    out: Path,
    pairs: int = 1000,
    seed: int = 0,
    tokenizer: Path | None = None,
    paradigms: Iterable[str] | None = None,
    overwrite: bool = False,
) -> GeneratedSuite:
    """Generate the minimal-pair suite from the packaged templates and word lists.

    Every paradigm is counterbalanced: its good and its bad sentences have the same words equally often. The
    packaged suite is what the default options make. A paradigm's pairs do not depend on which others are made.

    Parameters
    ----------
    out : path-like
        folder to write: manifest.yaml and one text file per paradigm, bad sentence first
    pairs : int
        pairs per paradigm, a multiple of 4
    seed : int
        seed of the random choice of words
    tokenizer : path-like, optional
        a tokenizer folder; only words that it keeps whole are used
    paradigms : iterable of str, optional
        names of paradigms (default: all)
    overwrite : bool
        replace an earlier suite

    Returns
    -------
    GeneratedSuite

    Raises
    ------
    ConfigError
        If a paradigm is unknown, or `pairs` is not a multiple of 4.
    DataError
        If there are too few words for that many pairs.
    OutputExistsError
        If `out` holds a suite and `overwrite` is false.

    Examples
    --------
    babyssa suite --out suite
    babyssa suite --out suite --pairs 2000 --seed 1
    babyssa suite --out suite --tokenizer tokenizer
    babyssa suite --out suite --paradigms binding-principle_a irregular-verb
    """
    from babyssa.language.suite import generate_suite

    made = generate_suite(
        out, pairs=pairs, seed=seed, tokenizer=tokenizer, paradigms=paradigms, overwrite=overwrite
    )
    say(f"wrote {len(made)} paradigms to {out}; try: babyssa probe MODEL --suite {out} --out results")
    return GeneratedSuite(tuple(made))
