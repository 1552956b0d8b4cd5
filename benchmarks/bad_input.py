"""Gives babyssa damaged, hostile and odd input: prints what it says, its exit status, and what is lost.

    python benchmarks/bad_input.py > table.md

Every case works on its own copy of a trained and probed model. "Lost" are files that were there before the
command and are gone or changed after it. Exit status 1 if anything is lost, a traceback shows, or an exit
status is not the one expected. Takes two minutes on one core.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from babyssa.cli import main as babyssa
from babyssa.files import locked

SENTENCES = ["the dog sees a cat .", "where is the ball ?", "look at the dogs !", "you want the red ball ."] * 30
PAIRS = "good,bad\nthe dogs see him .,the dogs sees him .\nlook at him !,look at he !\n"
TRANSCRIPT = "@UTF8\n@Begin\n@Participants:\tMOT Mother\n*MOT:\tthe dog barks loudly .\n@End\n"
TINY = [
    *("--size.layers", "1", "--size.heads", "2", "--size.hidden_size", "16", "--size.feed_forward_size", "24"),
    *("--optimisation.batch_size", "20", "--optimisation.steps", "6", "--optimisation.resume_every", "2"),
    *("--evaluation.held_out", "4", "--vocab-size", "300"),
]


def run(*argv: object, stdin: bytes = b"") -> tuple[int, str, str]:
    """One command line in this process: exit status, stdout, stderr."""
    out, err, old = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = babyssa([str(word) for word in argv])
    finally:
        sys.stdin = old
    return status, out.getvalue(), err.getvalue()


def hashes(folder: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest() if path.stat().st_size < 1 << 26 else ""
        for path in folder.rglob("*")
        if path.is_file()
    }


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def spoil_weights(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    next(iter(tensors.values())).fill_(float("nan"))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "checksums.json").unlink()


def stop_after_a_point(folder: Path) -> None:
    """Make the finished run an unfinished one, as a kill before the last file would have left it."""
    import signal

    from babyssa.training import resume

    shutil.rmtree(folder / "run")
    save = resume.ResumePoints.save

    def save_and_stop(self, values, *state):
        save(self, values, *state)
        if values["step"] == 4:
            signal.raise_signal(signal.SIGTERM)

    resume.ResumePoints.save = save_and_stop
    try:
        run(*training(folder))
    finally:
        resume.ResumePoints.save = save


def training(folder: Path, *options: object) -> list[object]:
    return ["train", "encoder", "--corpus", folder / "corpus.txt", "--out", folder / "run", *TINY, *options]


def zipped(path: Path, members: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def sparse(path: Path, size: int) -> None:
    with open(path, "wb") as file:
        file.truncate(size)


class Table:
    """The cases: each has what is given, how it is made, the command, and the exit status that is right."""

    def __init__(self, ready: Path, scratch: Path):
        self.ready = ready
        self.scratch = scratch
        self.rows: list[tuple[str, str, int, str]] = []
        self.wrong: list[str] = []

    def case(
        self,
        given: str,
        expected: int,
        make: Callable[[Path], object],
        command: Callable[[Path], list[object]],
        stdin: bytes = b"",
    ) -> None:
        folder = self.scratch / f"{len(self.rows):02}"
        shutil.copytree(self.ready, folder)
        make(folder)
        before = hashes(folder)
        status, stdout, stderr = run(*command(folder), stdin=stdin)
        after = hashes(folder)
        # A lock goes with its holder; a run that goes on writes its own log.
        own = (".lock", "log.jsonl")
        lost = sorted(
            str(path.relative_to(folder))
            for path in before
            if before[path] != after.get(path) and path.name not in own and "resume" not in path.parts
        )
        marked = ("error:", "warning:", "failed:")
        said = [line for line in stderr.splitlines() if any(mark in line for mark in marked)]
        shown = (said or stdout.strip().splitlines() or stderr.strip().splitlines())[-1]
        prepared = folder / "prepared" / "corpus.txt"
        if prepared.exists():
            shown = f"{len(prepared.read_bytes().splitlines())} sentences kept"
        shown = shown.replace(f"{folder}/", "").replace(str(folder), ".").replace("babyssa: error: ", "")
        self.rows.append((given, shown, status, ", ".join(lost) or "nothing"))
        if status != expected or lost or "Traceback" in stderr:
            self.wrong.append(f"{given}: exit status {status}, expected {expected}; lost {lost}\n{stderr}")
        shutil.rmtree(folder)

    def print(self) -> None:
        print("| what was given | what was said | exit | lost |\n| --- | --- | --- | --- |")
        for given, said, status, lost in self.rows:
            said = re.sub(r"([|<>*_`])", r"\\\1", said if len(said) < 260 else f"{said[:257]}...")
            print(f"| {given} | {said} | {status} | {lost} |")


def prepare_ready(folder: Path) -> None:
    folder.mkdir()
    (folder / "corpus.txt").write_text("\n".join(SENTENCES) + "\n")
    (folder / "pairs.csv").write_text(PAIRS)
    for command in (
        training(folder),
        ["probe", folder / "run", "--suite", folder / "pairs.csv", "--out", folder / "run" / "probe"],
        ["probe", folder / "run", "--suite", folder / "pairs.csv", "--out", folder / "other", "--variant", "ssa"],
    ):
        status, _, stderr = run(*command)
        if status:
            sys.exit(stderr)


def models(table: Table) -> None:
    def probing(folder: Path) -> list[object]:
        return ["probe", folder / "run", "--suite", folder / "pairs.csv", "--out", folder / "again"]

    table.case("truncated weights", 1, lambda d: truncate(d / "run" / "model.safetensors"), probing)
    table.case("one bit flipped in the weights", 1, lambda d: flip(d / "run" / "model.safetensors"), probing)
    table.case("one bit flipped in tokenizer.json", 1, lambda d: flip(d / "run" / "tokenizer.json"), probing)
    table.case("truncated config.json", 1, lambda d: truncate(d / "run" / "config.json"), probing)
    table.case("one bit flipped in config.yaml", 1, lambda d: flip(d / "run" / "config.yaml"), probing)
    table.case("truncated log.jsonl", 1, lambda d: truncate(d / "run" / "log.jsonl"), probing)
    table.case("weights removed", 1, lambda d: (d / "run" / "model.safetensors").unlink(), probing)
    table.case("truncated checksums.json", 1, lambda d: truncate(d / "run" / "checksums.json"), probing)
    table.case("NaN in the weights", 1, lambda d: spoil_weights(d / "run"), probing)

    def pickled(folder: Path) -> None:
        (folder / "run" / "checksums.json").unlink()
        (folder / "run" / "model.safetensors").rename(folder / "run" / "pytorch_model.bin")

    table.case("weights as a pickle", 1, pickled, probing)

    def own_code(folder: Path) -> None:
        (folder / "run" / "checksums.json").unlink()
        edit(folder / "run" / "config.json", model_type="mine", auto_map={"AutoConfig": "mine.Mine"})
        (folder / "run" / "mine.py").write_text("raise SystemExit('this code was run')\n")

    table.case("a model with code of its own", 1, own_code, probing)


def results(table: Table) -> None:
    def comparing(folder: Path) -> list[object]:
        return ["compare", folder / "run" / "probe", folder / "other", "--out", folder / "comparison"]

    def changed(**changes: object) -> Callable[[Path], None]:
        def change(folder: Path) -> None:
            (folder / "other" / "checksums.json").unlink()
            edit(folder / "other" / "summary.json", **changes)

        return change

    table.case("one bit flipped in pairs.csv", 1, lambda d: flip(d / "other" / "pairs.csv"), comparing)
    table.case("truncated summary.json", 1, lambda d: truncate(d / "other" / "summary.json"), comparing)
    table.case("results of two suites", 1, changed(suite_sha256="0" * 64), comparing)
    table.case("results of two methods", 1, changed(method="holistic"), comparing)
    table.case("results of two tokenizers", 1, changed(tokenizer_sha256="0" * 64), comparing)
    table.case("an accuracy that its pairs do not give", 1, changed(accuracy=0.99), comparing)


def trainings(table: Table) -> None:
    def damaged_point(folder: Path) -> None:
        stop_after_a_point(folder)
        newest = max((folder / "run" / "resume").iterdir(), key=lambda path: int(path.name.removeprefix("step-")))
        flip(newest / "state.safetensors")

    table.case("an unfinished run with a damaged resume point", 0, damaged_point, training)
    table.case(
        "an unfinished run, another learning rate",
        1,
        stop_after_a_point,
        lambda d: training(d, "--optimisation.learning_rate", "0.01"),
    )

    def broken_config(folder: Path) -> None:
        stop_after_a_point(folder)
        (folder / "run" / "config.yaml").write_text("seed: [0\n")

    table.case("an unfinished run with a broken config.yaml", 1, broken_config, training)
    table.case("a finished run, trained again", 1, lambda d: None, training)
    wild = ["--optimisation.learning_rate", "1e30", "--optimisation.max_grad_norm", 0]
    table.case("a learning rate of 1e30", 1, lambda d: shutil.rmtree(d / "run"), lambda d: training(d, *wild))
    with contextlib.ExitStack() as stack:

        def lock(folder: Path) -> None:
            shutil.rmtree(folder / "run")
            stack.enter_context(locked(folder / "run", "training"))

        table.case("a run folder that another process trains in", 1, lock, training)

    def in_the_way(folder: Path) -> None:
        (folder / "sweep").mkdir()
        (folder / "sweep" / "ssa-0").write_text("a file, not a folder")

    table.case(
        "a sweep with one cell that cannot be trained",
        1,
        in_the_way,
        lambda d: [
            *("sweep", "--corpus", d / "corpus.txt", "--out", d / "sweep", *TINY, "--suite", d / "pairs.csv"),
            *("--variants", "softmax", "ssa", "--seeds", 0),
        ],
    )
    small = table.scratch / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        print("no right to mount a small file system: the full disk is left out", file=sys.stderr)
        return
    try:
        table.case(
            "a disk that fills up while a model trains",
            1,
            lambda d: sparse_fill(small, 90_000),
            lambda d: [*training(d)[:4], "--out", small / "run", *TINY],
        )
        shutil.rmtree(small / "run")
        (small / "ballast").unlink()
        table.case(
            "a disk that fills up while a suite is probed",
            1,
            lambda d: sparse_fill(small, 4096),
            lambda d: ["probe", d / "run", "--suite", d / "pairs.csv", "--out", small / "result"],
        )
    finally:
        subprocess.run(["umount", small], check=True)


def sparse_fill(folder: Path, leave: int) -> None:
    (folder / "ballast").write_bytes(b"\0" * (shutil.disk_usage(folder).free - leave))


def corpora(table: Table) -> None:
    def preparing(name: str) -> Callable[[Path], list[object]]:
        return lambda d: ["prepare", d / name, "--out", d / "prepared", "--keep-unknown-age"]

    def corpus(given: str, expected: int, name: str, content: bytes | Callable[[Path], object]) -> None:
        make = content if callable(content) else lambda path: path.write_bytes(content)
        table.case(given, expected, lambda d: make(d / name), preparing(name))

    lines = "".join(f"{sentence}\n" for sentence in SENTENCES).encode()
    corpus("a corpus that is not UTF-8", 1, "a.txt", lines + b"caf\xe9 is nice .\n")
    corpus("a line of 100 MB", 1, "a.txt", lambda path: sparse(path, 100 << 20))
    corpus("an empty corpus", 1, "a.txt", b"")
    corpus("truncated gzip", 1, "a.txt.gz", gzip.compress(lines)[:-20])
    bomb = gzip.compress(b"the dog barks .\n" * (6 << 20))
    corpus("100 MB of text in 100 KB of gzip", 1, "a.txt.gz", bomb)
    corpus("a zip that is none", 1, "a.zip", b"PK\x03\x04 and no more")
    corpus(
        "a zip member of 100 MB", 1, "a.zip", lambda path: zipped(path, {"a.cha": "@Begin\n" + " " * (100 << 20)})
    )
    corpus(
        "zip members called ../../a.cha, /etc/a.cha",
        0,
        "a.zip",
        lambda path: zipped(path, {"../../a.cha": TRANSCRIPT, "/etc/a.cha": TRANSCRIPT}),
    )
    corpus("a transcript without @Begin", 1, "a.cha", b"*MOT:\tthe dog .\n")
    header = b"gloss,type,speaker_role,transcript_id,utterance_order,target_child_age\n"
    corpus("a CSV row with a field too few", 1, "a.csv", header + b"the dog barks,declarative,Mother,1,1\n")
    corpus("a byte-order mark and CRLF", 0, "a.txt", b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))
    corpus(
        "NUL, escape codes, emoji, right-to-left text",
        0,
        "a.txt",
        "a \0 b c .\n\x1b[2J x y .\n👩\u200d👧 שלום x .\n".encode(),
    )


def suites(table: Table) -> None:
    def suite(given: str, name: str, content: bytes | Callable[[Path], object], *options: str) -> None:
        make = content if callable(content) else lambda path: path.write_bytes(content)
        table.case(
            given,
            1,
            lambda d: make(d / name),
            lambda d: ["probe", d / "run", "--suite", d / name, "--out", d / "again", *options],
        )

    suite("an odd number of lines", "a.txt", b"a b\nc d\ne f\n", "--order", "bad-first")
    suite("two equal members of a pair", "a.csv", b"good,bad\nthe dog .,the dog .\n")
    suite("a broken line of JSON", "a.jsonl", b'{"sentence_good": "a b", "sentence_bad"\n')
    suite("a suite's line of 100 MB", "a.jsonl", lambda path: sparse(path, 100 << 20))
    suite("a sentence too long for the model", "a.csv", b"good,bad\n" + b"dog " * 500 + b",cat\n")


def sentences(table: Table) -> None:
    def scoring(given: str, expected: int, *text: str, stdin: bytes = b"") -> None:
        table.case(given, expected, lambda d: None, lambda d: ["score", d / "run", *text], stdin)

    scoring("the sentence '<mask> </s> <pad>'", 0, "<mask> </s> <pad>")
    scoring("emoji, combining marks, right-to-left", 0, "👩\u200d👧 e\u0301\u0323 \u202eשלום")
    scoring("only punctuation", 0, "?!… — ;")
    scoring("a sentence with escape codes", 0, "\x1b[2J\x1b]0;title\x07 dog")
    scoring("only spaces", 1, "   ")
    scoring("a lone surrogate", 1, "dog \udcff")
    scoring("a NUL, from standard input", 0, stdin=b"the \0 dog\n")
    scoring("100 MB without a line end, from standard input", 1, stdin=b"a" * (100 << 20))


def recipes(table: Table) -> None:
    def recipe(given: str, content: str) -> None:
        table.case(
            given,
            2,
            lambda d: (d / "a.yaml").write_text(content),
            lambda d: [
                "train",
                "encoder",
                "--config",
                d / "a.yaml",
                "--corpus",
                d / "corpus.txt",
                "--out",
                d / "new",
            ],
        )

    recipe("a recipe with a Python object", "seed: !!python/object/apply:os.system [echo]\n")
    aliases = "".join(
        f"{y}: &{y} [{', '.join([f'*{x}'] * 9)}]\n" for x, y in zip("abcdefgh", "bcdefghi", strict=True)
    )
    recipe("a recipe of aliases of aliases", f"a: &a [x, x, x, x, x, x, x, x, x]\n{aliases}")
    recipe("a recipe with a key twice", "seed: 1\nseed: 2\n")


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        ready = Path(scratch) / "ready"
        prepare_ready(ready)
        table = Table(ready, Path(scratch))
        for group in (models, results, trainings, corpora, suites, sentences, recipes):
            group(table)
    table.print()
    print(f"\n{len(table.rows)} inputs; {len(table.wrong)} not as they should be", file=sys.stderr)
    for wrong in table.wrong:
        print(wrong, file=sys.stderr)
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
