"""A plan of `metasched results` may be a stranger's: it reaches its own folder and nothing else."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tune_jobs.untrained_runs import make_run
from tune_jobs import cli
from tune_jobs.experiments.definition import experiment_names
from tune_jobs.experiments.reach import CALLS, note_begun
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.terminal.running import run

RUN = {"name": "a-{seed}", "preset": "deeprm-smoke", "iterations": 2}
STEP = {"call": "compare", "options": {"policies": "sjf", "jobsets": 5, "out": "{out}/compared"}}


def results(folder: Path, **plan: Any) -> int:
    """Status of a dry run of a plan, whose checks are those of a real one."""
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump({"seeds": [0], "runs": [], **plan}))
    return run(cli.metasched, ["results", str(file), "--out", str(folder / "out"), "--dry-run"])


def test_what_a_plan_may_do_it_does(tmp_path: Path) -> None:
    assert results(tmp_path, runs=[RUN], steps=[STEP]) == 0


def step(**changes: Any) -> dict[str, Any]:
    return {**STEP, "options": {**STEP["options"], **changes}}


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"runs": [{**RUN, "name": "../../gift/evil-{seed}"}]}, "outside"),
        ({"runs": [{**RUN, "name": "/elsewhere/{seed}"}]}, "outside"),
        ({"runs": [{**RUN, "name": "{place}{seed}", "vary": {"place": ["../x"]}}]}, "outside"),
        ({"runs": [{**RUN, "settings": {"tracking.uri": "http://127.0.0.1:1"}}]}, "sent"),
        ({"steps": [step(out="{out}/../compared")]}, "not in"),
        ({"steps": [step(out="/elsewhere")]}, "not in"),
        ({"steps": [step(address="10.0.0.1:6379")]}, "sent"),
        ({"steps": [{"call": "generate", "options": {"path": "../jobs.csv"}}]}, "not in"),
        ({"steps": [step(policies="{out.__class__}")]}, "name in braces"),
        ({"steps": [step(policies="{seed:>1000000000}")]}, "name in braces"),
        ({"steps": [{**step(policies="{a}" * 9000), "vary": {"a": ["x" * 9000]}}]}, "longer"),
        ({"steps": [{**STEP, "vary": {c: list(range(99)) for c in "abcdefgh"}}]}, "at most 10,000"),
        ({"runs": [{**RUN, "vary": {c: list(range(99)) for c in "abcdefgh"}}]}, "share|at most"),
        ({"uses": ["gift/plan.yaml"]}, "experiment to use"),
        *(
            ({"steps": [{"call": name, "options": {}}]}, "calls commands that evaluate")
            for name in sorted(cli.COMMANDS.keys() - CALLS)
        ),
    ],
)
def test_a_plan_that_reaches_further_is_refused(
    plan: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(tmp_path.rglob("*"))
    assert results(tmp_path, **plan) == 2
    error = capsys.readouterr().err
    assert any(part in error for part in message.split("|")), error
    assert error.count("\n") == 1
    assert set(tmp_path.rglob("*")) == before | {tmp_path / "plan.yaml"}


def test_a_link_leads_out_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "compared").symlink_to(tmp_path / "victim")
    assert results(tmp_path, steps=[STEP]) == 2
    assert "not in" in capsys.readouterr().err


class Evil:
    """What a pickle of runs as soon as it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def test_no_checkpoint_is_read_that_was_not_written_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run inside of the gift's own folder, at an iteration from which it would be resumed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run_dir = tmp_path / "out" / "a-0"
    make_run(run_dir)
    checkpoints = RunDirectory(run_dir).checkpoints

    def write(folder: Path) -> None:
        (folder / "algorithm_state.pkl").write_bytes(pickle.dumps(Evil(tmp_path / "hit")))

    checkpoints.write(1, write, keep=1)
    plan = {"runs": [{**RUN, "name": "a-{seed}"}]}
    assert results(tmp_path, **plan) == 2
    assert "did not write on this machine" in capsys.readouterr().err
    assert not (tmp_path / "hit").exists()
    note_begun(run_dir)
    results(tmp_path, **plan)
    assert "did not write on this machine" not in capsys.readouterr().err


@pytest.mark.parametrize("name", experiment_names())
def test_every_named_experiment_stays_within_its_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that need logs are given an empty folder, and say so after what they may do."""
    (tmp_path / "logs").mkdir()
    line = ["results", name, "--out", str(tmp_path / name), "--dry-run"]
    if run(cli.metasched, line) != 0:
        run(cli.metasched, [*line, "--logs", str(tmp_path / "logs")])
    error = capsys.readouterr().err
    for words in ("outside", "not in", "a plan"):
        assert words not in error
