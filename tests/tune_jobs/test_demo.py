"""``metasched demo``: its command lines are right, and all of it once, small."""

import csv
import re
from pathlib import Path

import click
import pytest

from cluster_env.core.seeding import Split
from meta.tasks import TaskSplit, get_distribution, objective_kind
from tune_jobs import cli, demo


@pytest.mark.parametrize("quick", [False, True])
def test_every_line_is_a_command_that_the_user_can_give(tmp_path: Path, quick: bool) -> None:
    lines = demo.command_lines(tmp_path, "today-s3", 3, quick=quick)
    assert [line[0] for line in lines] == (
        ["train", "compare", "figure", "compare", "train", *["adapt"] * len(demo.TASKS), "figure"]
    )
    for name, *words in lines:
        with click.Context(cli.metasched) as context:
            command = cli.metasched.get_command(context, name)
            assert command is not None
            found = command.make_context(name, list(words)).params
        assert found["seed"] == (0 if "meta-curves" in words else 3)  # its rows are recorded
        if name == "train":
            assert bool(found["overrides"]) == quick


def test_the_tasks_are_the_first_of_each_objective() -> None:
    split = TaskSplit(get_distribution("objectives"), 0, Split.HELD_OUT)
    found: dict[str, int] = {}
    for index in range(max(demo.TASKS) + 20):
        found.setdefault(objective_kind(split.task(index)), index)
    assert sorted(found.values()) == list(demo.TASKS)


@pytest.mark.parametrize("num_done", [0, 2, 4, None])
def test_what_there_is_by_now_is_said_also_if_the_rest_is_stopped(
    num_done: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = []
    monkeypatch.setattr(demo, "summary", lambda *where: [("Learned", "much")])

    def main(line: list[str], **options: object) -> int | None:
        given.append(line[0])
        return 130 if len(given) - 1 == num_done else None

    monkeypatch.setattr(cli.metasched, "main", main)
    status = cli.run(demo.command, ["--runs", str(tmp_path)])
    said = capsys.readouterr().out
    num_lines = len(demo.command_lines(tmp_path, "x", 0, quick=False))
    assert status == (0 if num_done is None else 130)
    assert len(given) == (num_lines if num_done is None else num_done + 1)
    assert f"[{len(given)}/{num_lines}] metasched {given[-1]}" in said
    assert ("MLflow" in said) == (num_done != 0)
    assert ("Learned  much" in said) == (num_done is None)
    assert said.startswith(f"{num_lines} commands, about five minutes on two cores")


def test_the_ending_says_what_came_out_of_the_tables(tmp_path: Path) -> None:
    run, _, compared = demo._folders(tmp_path, "x")
    columns = "key,learned,window,slowdown,utilization,longest_wait\n"
    rows = "sjf,False,50,3.1,0.52,24.4\ntetris,False,50,3,0.5,23.6\ndemo,True,50,2.4,0.41,31.2\n"
    tables = {compared / "comparison.csv": columns + rows}
    for number, task in enumerate(demo.TASKS):
        last = 1.3 if number == 0 else 0.9
        tables[tmp_path / f"demo-meta-x-task-{task}" / "adaptation.csv"] = (
            f"step,policy,ratio\n0,a,1.2\n1,b,1\n3,c,{last}\n,sjf,1.01\n"
        )
    for path, text in tables.items():
        path.parent.mkdir()
        path.write_text(text)
    assert list(demo.summary(tmp_path, "x")) == [
        ("Learned", "a mean slowdown of 2.40, 20% below tetris's 3.00"),
        (
            "Price",
            "utilization 41% (tetris 50%), longest wait in steps 31 (tetris 24); like the slowdown "
            "in windows of 50 steps",
        ),
        (
            "Adapted",
            "in three gradient steps from 1.20 to 0.98 times the cost of the best rule, the mean "
            "of 5 unseen tasks; lower in 4",
        ),
        ("Figure", f"first open {run}/figures/deeprm-fig4.png"),
        ("Next", "with jobs of your own: metasched trace jobs.csv, then metasched replay jobs.csv"),
        ("", "to repeat a paper's results: metasched results"),
        ("", "on a cluster: metasched train deeprm --address auto --runners 4"),
    ]


@pytest.mark.integration
@pytest.mark.slow
def test_the_whole_demo_leaves_runs_with_figures_in_the_store(
    local_ray: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(demo, "QUICK", (*demo.QUICK, "training.iterations=3"))
    monkeypatch.setattr(demo, "QUICK_META", (*demo.QUICK_META, "training.iterations=3"))
    monkeypatch.setattr(demo, "QUICK_JOBSETS", 10)
    monkeypatch.setattr(demo, "QUICK_HELD_OUT", 6)
    monkeypatch.setattr("tune_jobs.comparing.protocol.NUM_TUNING_JOBSETS", 4)
    monkeypatch.setattr(demo, "TASKS", demo.TASKS[:2])  # the others are of the same command
    assert cli.run(demo.command, ["--quick", "--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "10 unseen jobsets" in said
    assert said.count("\nafter 3 steps") == len(demo.TASKS)
    assert said.strip().splitlines()[-1].startswith("MLflow")
    assert re.search(r"^Learned +a mean slowdown of [\d.]+, \d+% ", said, re.MULTILINE)
    assert re.search(r"^Adapted +in three .* the mean of 2 unseen tasks", said, re.MULTILINE)
    (run,) = tmp_path.glob("demo-2*")
    for name in ("deeprm-fig4", "learning-curves"):
        assert (run / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (run / "figures" / f"{name}.csv").stat().st_size > 0
    compared, operated = sorted(tmp_path.glob("demo-compared-*"), key=lambda path: len(path.name))
    assert "deeprm-operation" in (operated / "comparison.csv").read_text()
    with (compared / "comparison.csv").open() as file:
        assert {line["key"] for line in csv.DictReader(file)} == {"sjf", "tetris", "hold", "demo"}
    (curves,) = tmp_path.glob("demo-meta-*/figures/meta-curves.png")
    assert curves.read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.glob("demo-meta-*-task-*/adaptation.csv"))) == len(demo.TASKS)
    assert (tmp_path / "mlflow.db").exists()
    copied = {path.name for path in (tmp_path / "mlartifacts").rglob("figures/*")}
    assert copied >= {"deeprm-fig4.png", "learning-curves.png", "comparison.csv", "adaptation.csv"}
