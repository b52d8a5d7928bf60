"""The notebook of first steps, cell by cell as Jupyter runs it: each ends in something to show.

Its cells are plain Python without magics, so neither a kernel nor nbclient is needed.
"""

import ast
import json

import numpy as np
import pandas as pd
import pytest

import metasched
from tests.conftest import REPOSITORY

NOTEBOOK = REPOSITORY / "tune_jobs" / "docs" / "first_steps.ipynb"


@pytest.fixture
def cells() -> list[dict]:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    return [one for one in notebook["cells"] if one["cell_type"] == "code"]


def test_no_outputs_are_kept_and_it_stays_short(cells) -> None:
    assert not any(one["outputs"] or one["execution_count"] for one in cells)
    assert sum(len(one["source"]) for one in cells) <= 30


def test_each_cell_shows_what_it_says(cells, tmp_path, monkeypatch, tuned_on_few) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = []
    for one in cells:
        *statements, last = ast.parse("".join(one["source"])).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(statements, []), str(NOTEBOOK), "exec"), names)
        shown.append(eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names))
    summary, rows, frame, shape, report, users, figure = shown
    assert 1 < summary.mean("slowdown") < 20
    assert "deeprm-operation" in repr(rows)
    assert isinstance(frame, pd.DataFrame)
    assert np.prod(shape) > 1000
    assert isinstance(report, metasched.Report)
    assert report["replay"]["policy"].isin(["fcfs:easy", "saf:easy", "hpc-order"]).sum() == 3
    assert users["of_work"].is_monotonic_decreasing
    assert len(figure.axes) == 2
    assert not any(tmp_path.iterdir())
