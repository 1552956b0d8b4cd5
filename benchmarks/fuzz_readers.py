"""Feed the readers random bytes and random edits of small real-looking files, for as long as is asked.

Whatever a file holds, it is read, or refused in one line that names it: nothing else may be raised, and of what
is read every utterance is kept or counted. Prints how many inputs there were, and each failure with its seed.

    python benchmarks/fuzz_readers.py --minutes 10 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from babyssa.corpus import clean, read_documents, read_utterances
from babyssa.corpus.cleaning import REASONS, CleaningRules
from babyssa.errors import BabySSAError
from babyssa.probing import load_suite

CHAT = (
    "@UTF8\n@Begin\n@Languages:\teng\n@Participants:\tCHI Amy Target_Child , MOT Mother\n"
    "@ID:\teng|X|CHI|2;06.10|female|||Target_Child|||\n@ID:\teng|X|MOT|||||Mother|||\n"
    "*MOT:\t&-um <put that> [//] put tha(t) there (.) wontcha [: won't you] ? \x15120_2443\x15\n"
    "%mor:\tco|um v|put pro|that ?\n*CHI:\tmo:re@o \u23082 juice \u23092 (1:30.5) fun$n \u02c8no .\n"
    "*MOT:\the said 'oh dear' \u0928\u092e\u0938\u094d\u0924\u0947 xxx +...\n\tand &=laughs 0it .\n@End\n"
)
CSV = (
    "gloss,type,speaker_role,transcript_id,utterance_order,target_child_age,collection_name\n"
    'what\'s that,question,Mother,1,1,608.75,Eng-NA\n"yes, dear",declarative,Father,1,2,608.75,Eng-NA\n'
    "more juice,declarative,Target_Child,1,3,NA,NA\nnull,declarative,Mother,2,1,,\n"
)
TEXT = "= = = NAME = = =\n*CHI:\tmore juice\n*MOT:\tyou want more ?\nA:\tyes .\n\nplain words here .\n"
ZORRO = "the dogs is big .\nthe dog is big .\n\nthe cats is big .\nthe cat is big .\n"
JSON = '{"sentence_good": "a b .", "sentence_bad": "b a .", "UID": "p", "linguistics_term": "q"}\n' * 2
TSV = 'sen\twrong_sen\tphenomenon\na b\t"b a\tx\n"c"\td\ty\n'
SEEDS = {
    "a.cha": CHAT, "a.csv": CSV, "a.txt": TEXT, "s.txt": ZORRO, "s.jsonl": JSON, "s.tsv": TSV,
    "s.csv": 'sen;wrong_sen;phenomenon\na b;b a;x\n"c; ""d""";d;y\n',
}  # fmt: skip
PIECES = [
    *"\r\n\t,;\"'<>[]()&0@$+_*%#:|=\\{}\0\x15\ufeff\ufffd\u200d\u2018\u2019\u0301\u0e33\u2308\u03ab\u1f29\u02c8\u2028",
    *("\r\n", "&=", "\x1b[2J", "\u23092", "\U0001f436", "NA", "nan", "inf", "-1", "1e400", "144.0", "(1:2.3)"),
    *("12_34", "@Begin\n", "*CHI:\t", "Target_Child", "null", "A" * 300),
]


def mutated(text: str, rng: random.Random) -> bytes:
    """`text` with a few random edits, of characters, lines and bytes."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice([0, 0, 1, 1, 3, 10, 60]))
        other = rng.choice([rng.choice(PIECES), chr(rng.randrange(0xD800)), text[end : end + 40], ""])
        text = text[:start] + other + text[end:]
    raw = bytearray(text.encode())
    if rng.random() < 0.3:
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(raw) + 1)
            raw[place : place + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
    if rng.random() < 0.2:
        return bytes(raw).replace(b"\n", rng.choice([b"\r", b"\r\n"]))
    return bytes(raw)


def check(path: Path, rng: random.Random) -> str:
    """Read one file in every way that its name allows; "read" or "refused"."""
    try:
        if path.name.startswith("s."):
            suite = load_suite(path, rng.choice(["bad-first", "good-first"]), strict=rng.random() < 0.2)
            assert suite.n_pairs and all(pair.good and pair.bad for p in suite.paradigms for pair in p.pairs)
            return "read"
        rules = CleaningRules(1, keep_unknown_age=rng.random() < 0.5, keep_child=rng.random() < 0.5)
        age_unit = rng.choice([None, "days", "months"])
        for utterance in read_utterances(path, kind=rng.choice(["auto", "text"]), age_unit=age_unit):
            sentence, reason = clean(utterance, rules)
            assert (sentence is None) != (reason is None) and (reason is None or reason in REASONS)
            assert sentence is None or (sentence.split() and "\n" not in sentence and "\r" not in sentence)
        list(read_documents(path, layout=rng.choice(["lines", "blocks", "file"])))
        return "read"
    except BabySSAError as error:
        assert error.path is not None and "\n" not in str(error) and str(path) in str(error)
        return "refused"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    counts, failures, number = Counter(), Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            number += 1
            rng = random.Random(f"{options.seed}-{number}")
            name = rng.choice(list(SEEDS))
            path = Path(folder) / name
            if rng.random() < 0.1:
                path.write_bytes(rng.randbytes(rng.randrange(300)))
            else:
                path.write_bytes(mutated(SEEDS[name], rng))
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    counts[name, check(path, rng)] += 1
            except Exception:
                where = traceback.format_exc().strip().splitlines()
                failures[where[-1][:200]] += 1
                if failures[where[-1][:200]] == 1:
                    print(f"input {options.seed}-{number} ({name}):", *where[-5:], sep="\n  ", flush=True)
    for (name, outcome), count in sorted(counts.items()):
        print(f"{count:>9,}  {name} {outcome}")
    print(f"{number:>9,}  inputs, {failures.total()} failures of {len(failures)} kinds")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
