"""The package's README has examples that run."""

import re
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from meta.tasks import TaskDistribution
from tests.conftest import REPOSITORY
from tests.tune_jobs.untrained_scorers import ONE_TASK, make_scorer

PAGE = REPOSITORY / "meta" / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def run(word: str) -> dict[str, object]:
    """Runs the example that holds a word, and returns its names."""
    [example] = [text for text in EXAMPLES if word in text]
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example, PAGE.name, "exec"), names)
    return names


def test_a_policy_is_adapted_in_three_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    longer = "task.workload.large_duration=[6, 8]"  # so that a load of 1.1 can be reached
    make_scorer(tmp_path / "runs" / "MY_RUN", *ONE_TASK, longer)
    names = run("adapt_policy")
    task, before, after = (names[name] for name in ("task", "before", "after"))
    jobsets = task.jobsets(Split.HELD_OUT, range(2))
    starts = [evaluate(policy, jobsets, task.world).start for policy in (before, after)]
    assert [policy.name for policy in (before, after)] == ["alone +0", "alone +3"]
    assert all((start >= 0).any() for start in starts)


def test_a_distribution_in_python_draws_tasks() -> None:
    nights = run("class Nights")["NIGHTS"]
    assert isinstance(nights, TaskDistribution)
    drawn = [nights.draw(np.random.default_rng(seed)).world for seed in range(20)]
    assert {world.cluster.capacity for world in drawn} == {(8, 8), (10, 10), (12, 12)}


def test_two_clusters_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    run("Table.of_real")
    count, posterior = capsys.readouterr().out.split()
    assert count == "2"
    assert float(posterior) < 0.5


def test_every_example_is_run_by_one_of_these_tests() -> None:
    assert len(EXAMPLES) == 3
