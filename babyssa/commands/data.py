"""Commands that make a corpus and its tokenizer."""

from __future__ import annotations

from typing import Literal


def prepare(
    *sources: str,
    out: str,
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
) -> None:
    """Read transcripts or text, clean every utterance, order them by the child's age, and write a corpus.

    Writes OUT/corpus.txt, one sentence per line, and OUT/stats.json, which counts every utterance that was
    left out under its reason.

    Parameters
    ----------
    *sources
        files, folders, globs, zips of CHAT transcripts, or datasets
    out
        folder to write
    kind
        what the sources are; auto tells by the end of their names (a dataset of the hub needs it); text reads
        every file of a folder, whatever it is called
    order
        age: youngest child first, sentences without an age last; source: as read
    min_words
        fewest words of a sentence, its end mark counted
    max_age
        oldest age of the child, in years (transcripts)
    keep_unknown_age
        keep transcripts that do not tell the age of a target child; most have none, and are adults' talk
    collection
        keep this CHILDES collection only, or any (childes-db)
    keep_child
        keep what children say, which is otherwise left out and counted
    age_unit
        unit of target_child_age (childes-db; default: days, unless no age is over 216)
    text_column
        column of text (datasets)
    overwrite
        replace an earlier corpus

    Examples
    --------
    babyssa prepare childes_db_csv/ --out corpora/childes
    babyssa prepare Bates.zip Bernstein/*.cha --out corpora/chat --min-words 4
    babyssa prepare aochildes.txt --out corpora/published
    babyssa prepare some-org/some-dataset --kind datasets --text-column text --out corpora/hub
    """
    from babyssa.console import say
    from babyssa.corpus import prepare as prepare_corpus

    stats = prepare_corpus(
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
    print(stats)
    say(f"wrote {out}/corpus.txt and {out}/stats.json")


def tokenizer(
    corpus: str,
    *,
    out: str,
    vocab_size: int = 8192,
    min_frequency: int = 2,
    lowercase: bool = True,
    overwrite: bool = False,
) -> None:
    """Train a byte-level BPE tokenizer, and write it as a folder that transformers loads.

    Parameters
    ----------
    corpus
        a prepared folder, or a text file with one sentence per line
    out
        folder to write
    vocab_size
        largest vocabulary, special tokens and bytes included
    min_frequency
        fewest times that a pair must occur to be merged
    lowercase
        lower-case all text
    overwrite
        replace an earlier tokenizer

    Examples
    --------
    babyssa tokenizer corpora/childes --out tokenizers/childes
    babyssa tokenizer corpus.txt --out tokenizers/small --vocab-size 2048
    """
    from babyssa.console import say
    from babyssa.corpus import train_tokenizer

    trained = train_tokenizer(
        corpus,
        out,
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        lowercase=lowercase,
        overwrite=overwrite,
    )
    print(f"{len(trained):,} tokens in the vocabulary")
    say(f"wrote {out}/tokenizer.json and {out}/tokenizer_config.json")


def sample(*, out: str, utterances: int = 30000, seed: int = 0, overwrite: bool = False) -> None:
    """Generate a sample corpus of child-directed speech, as a childes-db export (.csv or .csv.gz).

    The packaged sample, which the demo trains on, is what the default settings make.

    Parameters
    ----------
    out
        file to write, compressed if it ends in .gz
    utterances
        how many utterances the adults say; the children's come on top
    seed
        seed of everything that is drawn
    overwrite
        replace an earlier file

    Examples
    --------
    babyssa sample --out sample.csv.gz
    babyssa sample --out other.csv --utterances 100000 --seed 1
    babyssa prepare other.csv --out corpora/other
    """
    from babyssa.console import say
    from babyssa.language.sample import generate_sample

    stats = generate_sample(out, utterances=utterances, seed=seed, overwrite=overwrite)
    print(
        f"{stats.utterances:,} utterances by adults ({stats.tokens:,} words, {stats.types:,} different), "
        f"{stats.child_utterances:,} by children, in {stats.transcripts} transcripts "
        f"at {stats.youngest} to {stats.oldest:,} days"
    )
    say(f"wrote {out}")
