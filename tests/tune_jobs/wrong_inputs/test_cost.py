"""What a refusal costs: no library that only work needs, and little time of a processor."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

LIMIT_S = 3.0  # of all lines; one on a quiet machine, nearly all of it for what many import

LINES = (
    "trian",
    "train nosuch",
    "train deeprm-smoke --set training.iterations=true",
    "train --resume nowhere",
    "tune smoke --set training.nosuch=1",
    "compare --policies hold:99999999999999",
    "compare --at 0.7 --config nosuch",
    "compare --decide --policies nowhere",
    "adapt nowhere --task objectives:1",
    "adapt runs/scorer --task world.cluster.horizon=9",
    "study runs/good --steps 3,1",
    "study runs/good --specialists 1",
    "figure nosuch",
    "results nosuch",
    "bench --seconds nan",
    "sync nowhere",
)

# One process gives all lines, so that what any of them imports is seen behind it.
GIVE_ALL = """
import json, shlex, sys, time
from tune_jobs import cli
heavy = {"ray", "torch", "mlflow", "scipy.stats", "matplotlib"}
for line in json.loads(sys.argv[1]):
    began = time.process_time()
    status = cli.run(cli.metasched, shlex.split(line))
    spent = time.process_time() - began
    print(json.dumps([status, sorted(heavy & set(sys.modules)), spent]))
"""


@pytest.fixture(scope="module")
def given(made: Path) -> dict[str, tuple[int, list[str], float, str]]:
    """Of each line: status, heavy libraries by then, seconds of a processor, what stderr says."""
    done = subprocess.run(
        [sys.executable, "-c", GIVE_ALL, json.dumps(LINES)],
        cwd=made,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    said = zip(LINES, answers, done.stderr.splitlines(), strict=True)
    return {line: (*answer, error) for line, answer, error in said}


@pytest.mark.integration
@pytest.mark.parametrize("line", LINES)
def test_what_needs_no_library_is_refused_without_one(
    line: str, given: dict[str, tuple[int, list[str], float, str]]
) -> None:
    status, imported, _, error = given[line]
    assert status == 2
    assert error.startswith("metasched: ")
    assert imported == []


@pytest.mark.integration
def test_refusals_cost_little_together(
    given: dict[str, tuple[int, list[str], float, str]],
) -> None:
    assert 0 < sum(spent for _, _, spent, _ in given.values()) < LIMIT_S
