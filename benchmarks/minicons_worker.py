"""minicons (Misra 2022) in an environment of its own: what benchmarks/scoring.py starts with `--minicons PYTHON`.

    python benchmarks/minicons_worker.py MODEL THREADS

The first line on stdin is a JSON list of sentences. After each further line they are scored anew, one call for
every ten of them, and a JSON list of their pseudo-log-likelihoods in nats goes to stdout.
"""

import json
import sys

import torch
from minicons.scorer import MaskedLMScorer

AT_ONCE = 10

torch.set_num_threads(int(sys.argv[2]))
scorer = MaskedLMScorer(sys.argv[1], "cpu")
sentences = json.loads(sys.stdin.readline())
for _ in sys.stdin:
    scores = []
    for start in range(0, len(sentences), AT_ONCE):
        some = sentences[start : start + AT_ONCE]
        scores += scorer.sequence_score(some, reduction=lambda values: values.sum(0).item())
    print(json.dumps(scores), flush=True)
