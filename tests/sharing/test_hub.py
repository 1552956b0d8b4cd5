"""Pushing: what goes to the hub, tried on a server that takes what the hub takes."""

import base64
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants
import pytest
from huggingface_hub import ModelCard

from babyssa import probe
from babyssa.encoder import EncoderTraining, train_encoder
from babyssa.encoder.config import EncoderSize, Evaluation, Masking
from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.models.loading import load_model
from babyssa.sharing.hub import push
from babyssa.training.config import Optimisation

REPO = "someone/ssa-small"


@pytest.fixture(scope="module")
def run(corpus, tokenizer_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("hub") / "ssa-0"
    settings = EncoderTraining(
        corpus=corpus,
        tokenizer=tokenizer_folder,
        out=out,
        variant="ssa",
        size=EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24),
        masking=Masking(patterns=2),
        optimisation=Optimisation(batch_size=24, learning_rate=0.01, checkpoint_words=1000, checkpoint_every=5),
        evaluation=Evaluation(held_out=0),
    )
    train_encoder(settings)
    return out


class Hub(BaseHTTPRequestHandler):
    """Takes repositories, branches and commits, and keeps their files; refuses the owner "nobody"."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        hub, parts = self.server, self.path.strip("/").split("/")
        if parts[-2:] == ["repos", "create"]:
            asked = json.loads(body)
            if asked.get("organization") == "nobody":
                return self.answer({"error": "forbidden"}, 403)
            hub.private = asked.get("private") or asked.get("visibility") == "private"
            return self.answer({"url": f"{hub.endpoint}/{asked.get('organization')}/{asked['name']}"})
        if parts[-1] == "validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        kind, revision = parts[4], parts[5]
        if kind == "branch":
            hub.files.setdefault(revision, {})
            return self.answer({})
        if kind == "preupload":
            names = [file["path"] for file in json.loads(body)["files"]]
            answer = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return self.answer({"files": answer})
        lines = [json.loads(line) for line in body.splitlines()]
        sent = {line["value"]["path"]: line["value"]["content"] for line in lines if line["key"] == "file"}
        hub.files.setdefault(revision, {}).update({name: base64.b64decode(text) for name, text in sent.items()})
        return self.answer({"commitUrl": f"{hub.endpoint}/{REPO}/commit/1", "commitOid": "1", "success": True})

    def do_GET(self):
        self.answer({"error": "not found"}, 404)

    def answer(self, value, status=200):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_none")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files, server.private = {}, None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.endpoint = f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    server.server_close()


def test_a_run_goes_with_its_code_its_tokenizer_its_card_and_its_checkpoints_by_words(run, hub, tmp_path):
    found = push(run, REPO, license_name="mit", private=True, endpoint=hub.endpoint)
    assert set(hub.files) == {"main", "chck_1k"}
    assert hub.private and not found.dry_run
    expected = {"README.md", "config.json", "model.safetensors", "modeling_babyssa.py", "tokenizer.json"}
    for revision, files in hub.files.items():
        assert expected <= set(files) and set(found.files[revision]) == set(files)
        assert {name: len(content) for name, content in files.items()} == found.files[revision]
        assert not any(str(run).encode() in content for content in files.values())
    folder = tmp_path / "again"
    folder.mkdir()
    for name, content in hub.files["main"].items():
        (folder / name).write_bytes(content)
    assert load_model(folder).model.config.attention_scoring["name"] == "ssa"
    assert json.loads(hub.files["chck_1k"]["checkpoint.json"])["words"] >= 1000


def test_a_card_says_what_the_model_is_and_what_it_was_found_to_know(run, tmp_path):
    probe(run, out=tmp_path / "probed", limit=2)
    found = push(run, REPO, results=[tmp_path / "probed"], out=tmp_path / "out", license_name="mit", dry_run=True)
    card = ModelCard.load(tmp_path / "out" / "main" / "README.md")
    assert card.content == found.card
    assert card.data.license == "mit" and card.data.pipeline_tag == "fill-mask"
    accuracy = json.loads((tmp_path / "probed" / "summary.json").read_text())["accuracy"]
    assert card.data.eval_results[0].metric_value == round(accuracy, 4)
    for text in (
        f'AutoModelForMaskedLM.from_pretrained("{REPO}", trust_remote_code=True)',
        "| corpus | corpus.txt |",
        "| layer | n | b |",
        "macwhinney2000childes",
        "2508.14685",
        f"| **mean** | {100 * accuracy:.1f} |",
    ):
        assert text in found.card


def test_results_of_several_seeds_give_intervals(run, tmp_path):
    probe(run, out=tmp_path / "0", limit=1, paradigms=["agreement_determiner_noun-between_neighbors"])
    for seed in (0, 1, 2):
        if seed:
            shutil.copytree(tmp_path / "0", tmp_path / str(seed))
        summary = json.loads((tmp_path / str(seed) / "summary.json").read_text())
        if seed:
            summary |= {"seed": seed, "model_sha256": str(seed)}
        (tmp_path / str(seed) / "summary.json").write_text(json.dumps(summary))
        (tmp_path / str(seed) / "checksums.json").unlink(missing_ok=True)
    found = push(run, REPO, results=[tmp_path], license_name="mit", dry_run=True)
    assert "mean of 3 seeds [95% interval]" in found.card


def test_a_result_of_another_model_is_refused(run, masked_folder, tmp_path):
    probe(masked_folder, out=tmp_path / "probed", limit=1)
    with pytest.raises(DataError, match="is a result of another model"):
        push(run, REPO, results=[tmp_path / "probed"], license_name="mit", dry_run=True)


def test_a_dry_run_sends_nothing(run, hub, run_babyssa):
    status, stdout, _ = run_babyssa("push", run, REPO, "--dry-run")
    assert status == 0 and "would go to someone/ssa-small" in stdout and "chck_1k" in stdout
    assert hub.files == {}


def test_what_the_hub_refuses_is_one_line(run, hub):
    with pytest.raises(ModelError, match=r"the hub did not take nobody/x: .*403.*; log in with 'hf auth login'"):
        push(run, "nobody/x", license_name="mit", endpoint=hub.endpoint)
    with pytest.raises(ConfigError, match="is no name of a repository"):
        push(run, "a/b/c", license_name="mit", endpoint=hub.endpoint)
