"""The notebooks of examples/ run from top to bottom, each in a kernel of its own, and draw a figure."""

import os
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    jupytext = pytest.importorskip("jupytext", reason="no notebooks without jupytext: pip install 'babyssa[test]'")
    nbclient = pytest.importorskip("nbclient", reason="no notebooks without nbclient: pip install 'babyssa[test]'")
    notebook = jupytext.read(path)
    place = {"metadata": {"path": str(tmp_path)}}
    # The tests' own backend draws into nothing.
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    nbclient.NotebookClient(notebook, timeout=300, resources=place).execute(env=environment)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not list(tmp_path.iterdir()), "a notebook writes to temporary folders only"
