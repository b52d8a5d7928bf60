"""What a refusal costs: no library that only work needs, and little time of a processor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 3.0

LINES = (
    "trian",
    "train",
    "train nosuch",
    "train deeprm-smoke --set training.iterations=true",
    "train --resume nowhere",
    "tune smoke --set training.nosuch=1",
    "compare --policies hold:99999999999999",
    "compare --at 0.7 --config nosuch",
    "guard nowhere",
    "adapt nowhere --task objectives:1",
    "adapt runs/scorer --task world.cluster.horizon=9",
    "study runs/good --steps 3,1",
    "specialists runs/good",
    "figure nosuch",
    "results nosuch",
    "bench --seconds nan",
    "sync nowhere",
)

SHOW_WHAT_WAS_IMPORTED = """
import sys
from tune_jobs import cli
status = cli.run(cli.metasched, sys.argv[1:])
heavy = {"ray", "torch", "mlflow", "scipy.stats", "matplotlib.pyplot"} & set(sys.modules)
sys.stderr.write(f"imported {sorted(heavy)}\\n")
sys.exit(status)
"""


@pytest.mark.integration
@pytest.mark.parametrize("line", LINES)
def test_what_needs_no_library_is_refused_without_one(line: str, made: Path) -> None:
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", SHOW_WHAT_WAS_IMPORTED, *line.split()],
        cwd=made,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    assert done.returncode == 2, done.stderr
    error, imported = done.stderr.splitlines()
    assert error.startswith("metasched: ")
    assert imported == "imported []"
    assert spent < LIMIT_S
