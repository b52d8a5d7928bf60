"""The demo's last part: which task it takes, what it says, writes and records."""

from pathlib import Path

import pytest
from training.tasks import TaskSplit, get_distribution, objective_name

from cluster_env.core.seeding import Split
from tests.tune_jobs.made_up_methods import FOMAML, make_family, make_scorer
from tests.tune_jobs.recorder import record_with
from tune_jobs.adapting import demo as demo_adaptation
from tune_jobs.adapting.table import verdict
from tune_jobs.runs.directory import open_run
from tune_jobs.terminal.progress import NoProgress
from tune_jobs.terminal.tables import number, read_table


def test_the_tasks_are_the_first_of_each_objective() -> None:
    tasks = demo_adaptation.unseen_tasks("objectives")
    split = TaskSplit(get_distribution("objectives"), 0, Split.HELD_OUT)
    assert len({objective_name(task) for task in tasks}) == len(tasks) == 5
    for task in tasks:
        index = int(task.name.rpartition(":")[2])
        assert task == split.task(index)
        earlier = {objective_name(split.task(k)) for k in range(index)}
        assert objective_name(task) not in earlier


def test_table_and_figure_are_kept_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record_with(monkeypatch)
    monkeypatch.setattr(demo_adaptation, "QUICK_JOBSETS", 6)
    family = make_family(tmp_path / "small.yaml")
    path = make_scorer(tmp_path / "run", *FOMAML, f"training.family={family}", rates=4.0)
    run = open_run(path)
    lines = demo_adaptation.adapt_and_draw(run.config(), run, NoProgress(), quick=True)
    rows = read_table(run.figures / "adaptation.csv", ("task", "step", "policy", "cost", "ratio"))
    names = {row["task"] for row in rows}
    assert len(names) == 2
    heuristics = {"tetris", "sjf", "packer", "hold", "random"}
    for name in names:
        mine = [row for row in rows if row["task"] == name]
        assert [row["step"] for row in mine] == ["0", "1", "3", "", "", "", "", ""]
        assert {row["policy"].partition(":")[0] for row in mine[3:]} == heuristics
    assert (run.figures / "adaptation.png").read_bytes().startswith(b"\x89PNG")
    assert recorder.files == ["adaptation.csv", "adaptation.png"]
    after = [number(row, "ratio") for row in rows if row["step"] == "3"]
    mean = sum(after) / 2
    assert recorder.points["unseen_task/adapted/ratio", 3] == pytest.approx(mean)
    assert ("unseen_task/tetris/ratio", 0) in recorder.points
    said = "\n".join(lines)
    for text in ("makespan", "slowdown", "before", "after 3 steps", "6 held-out jobsets a task"):
        assert text in said
    (line,) = (line for line in lines if line.startswith("mean "))
    assert line.split()[3] == f"{mean:.3f}"
    assert "one seed" in lines[-1]


def test_the_sentence_says_so_when_it_got_worse() -> None:
    rows = [{"step": 0, "ratio": 0.9}, {"step": 3, "ratio": 1.08}, {"ratio": 1.0}]
    said = "the policy costs 20.0% more than before, and 8.0% more than the best of"
    assert said in verdict(rows)
