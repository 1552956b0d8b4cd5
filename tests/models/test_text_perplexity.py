"""Perplexity against brute force: every token on its own, from exactly the context that the window gives it."""

import json
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import babyssa
from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.models import as_loaded, perplexity, score
from babyssa.models.text_perplexity import _questions, perplexities, token_nats

TEXT = ["the dog sees a cat .", "where is the ball ?", "mommy gave the baby a cookie .", "look !"] * 3


@settings(max_examples=100, deadline=None)
@given(count=st.integers(1, 60), length=st.integers(1, 15), share=st.floats(0.01, 1))
def test_every_token_is_predicted_once_from_as_much_context_as_is_promised(count, length, share):
    stride = max(1, int(length * share))
    asked = [
        (target, questions.rows[row, : position + 1])
        for questions in _questions(np.arange(count + 1), length, stride)
        for row, position, target in zip(questions.row, questions.position, questions.target, strict=True)
    ]
    assert [target for target, _ in asked] == list(range(1, count + 1))
    for target, context in asked:
        assert context[-1] == target - 1, "the token before is the last of the context"
        assert min(target, length - stride + 1) <= len(context) <= length


@pytest.mark.parametrize("variant", ["softmax", "ssa", "linear"])
@pytest.mark.parametrize("max_length, stride", [(24, 24), (24, 7), (10, 1), (10, 4)])
def test_windows_agree_with_brute_force(variant, max_length, stride, decoder, decoder_tokenizer, logits):
    model = decoder(variant)
    ids = decoder_tokenizer(" ".join(TEXT), add_special_tokens=False)["input_ids"][:70]
    row = [decoder_tokenizer.eos_token_id, *ids]
    expected = []
    for place in range(1, len(row)):
        late = place - max_length
        window = 0 if late <= 0 else math.ceil(late / stride) * stride
        expected.append(-logits(model, row[window:place])[-1].log_softmax(-1)[row[place]].item())
    found = token_nats(
        as_loaded((model, decoder_tokenizer)), ids, max_length=max_length, stride=stride, batch_size=3
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_perplexity_of_lines_counts_the_end_of_each(decoder, decoder_tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXT) + "\n")
    model = decoder("ssa")
    found = perplexity((model, decoder_tokenizer), tmp_path / "a.txt", documents="lines", stride=24)
    ids = []
    for line in TEXT:
        ids += [*decoder_tokenizer(line, add_special_tokens=False)["input_ids"], decoder_tokenizer.eos_token_id]
    nats = token_nats(as_loaded((model, decoder_tokenizer)), ids, stride=24)
    assert (found.kind, found.tokens, found.documents) == ("perplexity", len(ids), 12)
    assert found.nats_per_token == pytest.approx(nats.mean()) and found.perplexity == pytest.approx(
        math.exp(nats.mean())
    )
    words = sum(len(line.split()) for line in TEXT)
    assert found.words == words and found.word_perplexity == pytest.approx(math.exp(nats.sum() / words))
    assert found.bytes == (tmp_path / "a.txt").stat().st_size
    assert found.bits_per_byte == pytest.approx(nats.sum() / math.log(2) / found.bytes)
    assert (found.max_length, found.stride) == (24, 24)


def test_perplexity_of_one_sentence_is_that_of_its_score(decoder, decoder_tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text(TEXT[0])
    pair = (decoder("ssa"), decoder_tokenizer)
    (scored,) = score(pair, [TEXT[0]])
    found = perplexity(pair, tmp_path / "a.txt")
    assert found.layout == "file" and found.tokens == len(scored.tokens)
    assert found.nats_per_token == pytest.approx(-scored.score / found.tokens, rel=1e-5)


def test_the_rows_of_a_dataset_are_documents(decoder, decoder_tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXT))
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"line": line}) for line in TEXT))
    pair = (decoder(), decoder_tokenizer)
    rows = perplexity(pair, tmp_path / "a.jsonl", text_column="line")
    assert rows.layout == "rows"
    assert rows.perplexity == perplexity(pair, tmp_path / "a.txt", documents="lines").perplexity


@pytest.fixture
def splits(tmp_path):
    """A dataset with three splits, and each split as a text file of lines."""
    import datasets

    lines = {"train": TEXT[:4], "validation": TEXT[1:3], "test": ["", *TEXT[:3]]}
    datasets.DatasetDict(
        {name: datasets.Dataset.from_dict({"text": rows}) for name, rows in lines.items()}
    ).save_to_disk(tmp_path / "dataset")
    for name, rows in lines.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(rows))
    return tmp_path


@pytest.mark.parametrize("streaming", [False, True])
def test_the_split_is_the_test_data_unless_named_and_is_said(
    streaming, splits, decoder, decoder_tokenizer, capsys
):
    pair = (decoder(), decoder_tokenizer)

    def of(name, **options):
        return perplexity(pair, splits / name, streaming=streaming, **options)

    found = of("dataset")
    assert (found.split, found.documents) == ("test", 3) and re.search("split +test", str(found))
    assert "dataset: split test" in capsys.readouterr().err
    assert found.nats_per_token == of("test.txt", documents="lines").nats_per_token
    for name in ("train", "validation"):
        found = of("dataset", split=name)
        assert found.split == name and found.nats_per_token == of(f"{name}.txt", documents="lines").nats_per_token
    with pytest.raises(DataError, match=r"no split 'tset' \(found: train, validation, test\); name one"):
        of("dataset", split="tset")
    with pytest.raises(DataError, match="only a dataset has splits"):
        of("test.txt", split="test")


@pytest.mark.parametrize("streaming", [False, True])
def test_a_limit_takes_the_first_documents_that_have_words(streaming, splits, decoder, decoder_tokenizer):
    pair = (decoder(), decoder_tokenizer)
    (splits / "two.txt").write_text("\n".join(TEXT[:2]))
    expected = perplexity(pair, splits / "two.txt", documents="lines")
    for text in ("dataset", "test.txt"):
        found = perplexity(pair, splits / text, documents="lines", limit=2, streaming=streaming)
        assert (found.documents, found.limit) == (2, 2) and "2, the first" in str(found)
        assert (found.nats_per_token, found.bytes) == (expected.nats_per_token, expected.bytes)
    with pytest.raises(ConfigError, match=r"limit counts documents, but .*test\.txt is read as one"):
        perplexity(pair, splits / "test.txt", limit=2)
    with pytest.raises(ConfigError, match="limit is 0"):
        perplexity(pair, splits / "dataset", limit=0)


def test_several_texts_are_a_table_and_a_mistake_in_the_last_is_found_first(
    splits, decoder, decoder_tokenizer, capsys
):
    pair = (decoder(), decoder_tokenizer)
    texts = [splits / "dataset", splits / "train.txt"]
    found = babyssa.perplexity(pair, texts, documents="lines", stride=6)
    single = [babyssa.perplexity(pair, text, documents="lines", stride=6) for text in texts]
    assert found.texts == tuple(single) and found.to_frame().split.tolist()[0] == "test"
    (table,) = found.tables()
    assert [row[:4] for row in table.rows] == [
        (str(text), one.split, one.documents, one.tokens) for text, one in zip(texts, single, strict=True)
    ]
    assert "24 tokens, 6 apart" in str(found)
    capsys.readouterr()
    with pytest.raises(DataError, match="no such file"):
        perplexities(pair, [*texts, splits / "none.txt"])
    assert "perplexity" not in capsys.readouterr().err, "nothing was measured"
    with pytest.raises(ConfigError, match="no text given"):
        perplexities(pair, [])


def test_a_model_of_another_make_is_measured_too(decoder_tokenizer, tmp_path, logits):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=len(decoder_tokenizer), n_positions=20, n_embd=16, n_layer=1, n_head=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT2LMHeadModel(config).eval()
    (tmp_path / "a.txt").write_text(" ".join(TEXT))
    found = perplexity((model, decoder_tokenizer), tmp_path / "a.txt", stride=1)
    row = [
        decoder_tokenizer.eos_token_id,
        *decoder_tokenizer(" ".join(TEXT), add_special_tokens=False)["input_ids"],
    ]
    expected = [
        -logits(model, row[max(0, i - 20) : i])[-1].log_softmax(-1)[row[i]].item() for i in range(1, len(row))
    ]
    assert found.max_length == 20 and found.perplexity == pytest.approx(math.exp(np.mean(expected)), rel=1e-4)


def test_a_masked_model_gets_a_pseudo_perplexity_of_its_sentences(tokenizer, tmp_path):
    from babyssa.encoder import EncoderSize, build_encoder

    size = EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24)
    pair = (build_encoder(size, tokenizer, variant="ssa"), tokenizer)
    (tmp_path / "a.txt").write_text("\n".join(TEXT))
    found = perplexity(pair, tmp_path / "a.txt")
    scores = score(pair, TEXT, method="pll")
    tokens = sum(len(scored.tokens) for scored in scores)
    assert (found.kind, found.tokens, found.stride) == ("pseudo-perplexity", tokens, None)
    assert found.perplexity == pytest.approx(math.exp(-sum(scored.score for scored in scores) / tokens))
    for wrong in ({"stride": 4}, {"max_length": 8}, {"documents": "file"}):
        with pytest.raises(ConfigError):
            perplexity(pair, tmp_path / "a.txt", **wrong)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"stride": 25}, "stride is 25, but max_length 24"),
        ({"stride": 0}, "stride is 0"),
        ({"max_length": 25}, "takes 1 to 24 tokens"),
        ({"max_length": 0}, "takes 1 to 24 tokens"),
    ],
)
def test_a_window_that_does_not_fit_is_refused(options, says, decoder, decoder_tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("hi")
    with pytest.raises(ConfigError, match=says):
        perplexity((decoder(), decoder_tokenizer), tmp_path / "a.txt", **options)


def test_an_empty_text_and_broken_weights_are_refused(decoder, decoder_tokenizer, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    model = decoder()
    with pytest.raises(DataError, match="the text is empty"):
        perplexity((model, decoder_tokenizer), tmp_path / "empty.txt")
    (tmp_path / "a.txt").write_text("the dog")
    with torch.no_grad():
        model.model.norm.bias.fill_(torch.nan)
    with pytest.raises(ModelError, match="log-probability of token 1 is NaN"):
        perplexity((model, decoder_tokenizer), tmp_path / "a.txt")


def test_the_command_prints_the_unit_or_json(decoder, decoder_tokenizer, tmp_path, run_babyssa):
    from babyssa.training.run_folder import save_model

    save_model(tmp_path / "model", decoder("ssa"), decoder_tokenizer)
    (tmp_path / "a.txt").write_text("\n".join(TEXT))
    arguments = ("perplexity", tmp_path / "model", tmp_path / "a.txt", "--documents", "lines")
    status, stdout, _ = run_babyssa(*arguments)
    assert status == 0 and "nats per token" in stdout and "bits per byte" in stdout and "24, 12" in stdout
    status, stdout, _ = run_babyssa(*arguments, "--stride", 6, "--json")
    found = json.loads(stdout)
    assert (
        status == 0
        and found["stride"] == 6
        and found["perplexity"] == pytest.approx(math.exp(found["nats_per_token"]))
    )
    status, stdout, stderr = run_babyssa(*arguments, tmp_path / "a.txt", tmp_path / "b.txt", "--json")
    assert status == 1 and "b.txt" in stderr
    (tmp_path / "b.txt").write_text(TEXT[0])
    status, stdout, stderr = run_babyssa(*arguments[:3], tmp_path / "b.txt", *arguments[3:], "--json")
    assert status == 0 and [text["documents"] for text in json.loads(stdout)] == [12, 1], stderr
    for wrong, code in ((("--stride", 99), 2), (("--max_length", 99), 2)):
        status, stdout, stderr = run_babyssa(*arguments, *wrong)
        assert (status, stdout) == (code, "") and len(stderr.splitlines()) == 1
    for missing in (tmp_path / "none.txt", "no/such/text"):
        status, stdout, stderr = run_babyssa("perplexity", tmp_path / "model", missing)
        assert (status, stdout) == (1, "") and "no such file" in stderr and len(stderr.splitlines()) == 1
