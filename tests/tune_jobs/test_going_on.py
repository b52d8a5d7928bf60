"""What a run that goes on takes over: its whole checkpoints, its settings, and its table."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import load_config
from tune_jobs.runs.directory import RunDirectory, create_run
from tune_jobs.runs.history import History
from tune_jobs.runs.resuming import find_continuation, find_resumption

SETTINGS = ["training.iterations=8"]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that was killed after 4 of 8 iterations, with checkpoints at 2 and 4."""
    made = create_run(load_config("deeprm-smoke", SETTINGS), tmp_path / "run")
    for iteration in range(1, 5):
        made.history.append(iteration, {"a": float(iteration)})
        if iteration % 2 == 0:
            made.write_checkpoint(iteration, lambda folder: fill(folder, "kept"), keep=2)
    made.write_policy(lambda folder: fill(folder, "policy"))
    made.unlock()
    return made


def fill(folder: Path, text: str) -> None:
    (folder / "one").write_text(text)
    (folder / "two").write_text(text)


def test_it_goes_on_from_its_newest_checkpoint(run: RunDirectory) -> None:
    checkpoint = find_resumption(run.path).checkpoint
    assert checkpoint is not None
    assert checkpoint.iteration == 4


def test_a_damaged_checkpoint_is_passed_over(run: RunDirectory) -> None:
    fill(run.checkpoints.newest().path, "KEPT")
    found = find_continuation(run.path, run.config())
    assert found is not None
    assert found.checkpoint is not None
    assert found.checkpoint.iteration == 2
    found.run.unlock()


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ("seed=9", False),
        ("training.lr=0.5", False),
        ("training.gamma=0.5", False),
        ("task.workload.load=0.9", False),
        ("task.objective=makespan", False),
        ("evaluation.jobsets=3", False),
        ("training.iterations=9", True),
        ("evaluation.every=3", True),
        ("checkpoint.keep=7", True),
        ("resources.num_runners=0", True),
    ],
)
def test_only_what_no_number_depends_on_may_change(
    run: RunDirectory, change: str, may: bool
) -> None:
    if may:
        assert find_resumption(run.path, [change]).run.path == run.path
        return
    with pytest.raises(InputError, match="results depend on it"):
        find_resumption(run.path, [change])


def test_a_run_is_done_after_all_of_its_iterations(run: RunDirectory) -> None:
    assert [run.has_done(number) for number in (2, 4, 8)] == [False, True, False]


def test_every_file_of_a_policy_tells_it_from_others(run: RunDirectory) -> None:
    before = run.policy_digest()
    for name in ("one", "two"):
        (run.policy / name).write_text("other")
        assert run.policy_digest() != before
        (run.policy / name).write_text("policy")
    assert run.policy_digest() == before


@pytest.mark.parametrize("damaged", ["3\n", "3,3,3\n", "3,"])
def test_a_row_that_is_no_row_is_left_out(damaged: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(f"iteration,a\n1,1\n2,2\n{damaged}")
    assert [row["iteration"] for row in History(tmp_path / "metrics.csv").rows()] == [1, 2]
