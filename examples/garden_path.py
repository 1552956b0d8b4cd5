# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Surprisal along a garden path
#
# In *I heard the dog chased the cat* a reader first takes the dog for what I heard, and the second verb comes as a
# surprise; *that* says in time that a clause follows (Frazier & Rayner 1982 on people; Futrell et al. 2019 on
# language models). Here a causal model is trained in a few seconds, and asked how surprising each word is to it.
#
# The model is one for show: it has read nothing but a few thousand generated sentences of 18 words. For results,
# name a model of your own, `model = "runs/decoder"` or `"gpt2"`, and continue at "Items".

# %%
import random
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import pandas as pd

from babyssa import DecoderTraining, score, train_decoder

folder = Path(mkdtemp())

# %% [markdown]
# ## A model
#
# People are heard and seen more often than clauses are. Of clauses, two in three have *that*.

# %%
NOUNS = ["dog", "cat", "boy", "girl", "baby", "bear"]
VERBS = ["chased", "found", "hugged", "washed"]
SPEAKERS = ["I", "mommy", "we", "daddy"]

draw = random.Random(0)


def clause() -> str:
    return f"the {draw.choice(NOUNS)} {draw.choice(VERBS)} the {draw.choice(NOUNS)}"


def sentence() -> str:
    start = f"{draw.choice(SPEAKERS)} {draw.choice(['heard', 'saw'])}"
    kinds = [clause(), f"{start} the {draw.choice(NOUNS)}", f"{start} that {clause()}", f"{start} {clause()}"]
    return draw.choices(kinds, weights=[3, 6, 2, 1])[0] + " ."


(folder / "corpus.txt").write_text("\n".join(sentence() for _ in range(3000)))

settings = DecoderTraining.from_recipe(
    "mini",
    corpus=folder / "corpus.txt",
    out=folder / "model",
    vocab_size=340,
    size={"layers": 2, "hidden_size": 64, "feed_forward_size": 128, "max_length": 32},
    optimisation={"steps": 90, "batch_size": 16, "learning_rate": 4e-3},
    evaluation={"held_out": 50},
)
train_decoder(settings)
model = folder / "model"

# %% [markdown]
# ## Items
#
# One row for each sentence; all columns but the text are kept, and results are joined by them.

# %%
items = pd.DataFrame(
    {"item": item, "condition": condition, "text": f"{start}{that} the {noun} chased the cat ."}
    for item, (start, noun) in enumerate([("I heard", "dog"), ("mommy saw", "bear"), ("we heard", "girl")])
    for condition, that in [("garden path", ""), ("control", " that")]
)
items

# %% [markdown]
# ## Surprisal of words
#
# In bits, summed over the tokens of a word. `docs/scoring.md` defines it.

# %%
words = score(model, items, per="word", measure="surprisal", base="bits").to_frame()
words[["item", "condition", "word_in_sentence", "word", "tokens", "score"]].head(9)

# %% [markdown]
# ## The figure
#
# The words of one item stand below each other; the critical word is the first at which the two readings part.

# %%
first = words[words.item == 0].copy()
# The control has a word more: where it stands, the other line has nothing.
order = first.loc[first.condition == "control", "word"].tolist()
shift = (first.condition == "garden path") & (first.word_in_sentence >= order.index("that"))
first["position"] = first.word_in_sentence + shift

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for condition, own in first.groupby("condition", sort=False):
    axes.plot(own.position, own.score, marker="o", label=condition)
axes.set_xticks(range(len(order)), order)
axes.axvspan(order.index("chased") - 0.4, order.index("chased") + 0.4, color="0.9", zorder=0)
axes.set_ylabel("surprisal (bits)")
axes.legend(frameon=False)
figure.savefig(folder / "garden_path.png", dpi=150)

# %% [markdown]
# ## The effect
#
# Surprisal at the critical word, garden path less control, item by item. With more items than three, and models of
# several seeds, this is what goes into a test.

# %%
critical = words[words.word == "chased"].pivot(index="item", columns="condition", values="score")
critical["effect"] = critical["garden path"] - critical["control"]
critical.round(2)
