"""The demo's last part: which task it takes, what it says, writes and records."""

from pathlib import Path

import pytest

from cluster_env.core.seeding import Split
from meta.tasks import TaskSplit, get_distribution, objective_name
from tests.tune_jobs.made_up_arms import FOMAML, make_family, make_scorer
from tests.tune_jobs.recorder import record_with
from tune_jobs import demo_adaptation
from tune_jobs.adaptation_table import verdict
from tune_jobs.progress import NoProgress
from tune_jobs.runs import open_run
from tune_jobs.tables import number, read_table


@pytest.mark.parametrize("family", ["objectives", "small"])
def test_the_task_is_the_first_whose_objective_the_warm_up_does_not_know(
    family: str, tmp_path: Path
) -> None:
    name = family if family == "objectives" else str(make_family(tmp_path / "small.yaml"))
    task = demo_adaptation.unseen_task(name)
    index = int(task.name.rpartition(":")[2])
    split = TaskSplit(get_distribution(name), 0, Split.HELD_OUT)
    assert task == split.task(index)
    assert objective_name(task.section) != "slowdown"
    earlier = [objective_name(split.task(k).section) for k in range(index)]
    assert earlier == ["slowdown"] * index


def test_table_and_figure_are_kept_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record_with(monkeypatch)
    monkeypatch.setattr(demo_adaptation, "QUICK_JOBSETS", 6)
    family = make_family(tmp_path / "small.yaml")
    path = make_scorer(tmp_path / "run", *FOMAML, f"meta.family={family}", rates=4.0)
    run = open_run(path)
    lines = demo_adaptation.adapt_and_draw(run.config(), run, NoProgress(), quick=True)
    rows = read_table(run.figures / "adaptation.csv", ("step", "policy", "cost", "ratio"))
    assert [row["step"] for row in rows] == ["0", "1", "3", "", "", "", "", ""]
    assert {row["policy"].partition(":")[0] for row in rows[3:]} == {
        *("tetris", "sjf", "packer", "hold", "random")
    }
    assert (run.figures / "adaptation.png").read_bytes().startswith(b"\x89PNG")
    assert recorder.files == ["adaptation.csv", "adaptation.png"]
    assert recorder.points["unseen_task/adapted/cost", 3] == number(rows[2], "cost")
    assert ("unseen_task/tetris/ratio", 0) in recorder.points
    said = "\n".join(lines)
    for text in ("makespan", "before adaptation", "after 3 steps", "on 6 held-out jobsets"):
        assert text in said
    assert "one task and one seed" in lines[-1]


def test_the_sentence_says_so_when_it_got_worse() -> None:
    rows = [{"step": 0, "ratio": 0.9}, {"step": 3, "ratio": 1.08}, {"ratio": 1.0}]
    said = "the policy costs 20.0% more than before, and 8.0% more than the best of"
    assert said in verdict(rows)
