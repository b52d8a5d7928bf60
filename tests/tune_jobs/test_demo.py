"""``metasched demo``: its command lines are right, its summary is that of its tables, and all of it
once, small."""

import csv
import re
from pathlib import Path
from typing import Any

import click
import pytest

from tests.conftest import REPOSITORY
from tune_jobs import cli, demo
from tune_jobs.demo import Demo
from tune_jobs.measuring.markdown import markdown_rows
from tune_jobs.measuring.verdict import verdicts
from tune_jobs.tables.frames import read_table, write_table

RECORDED = REPOSITORY / "tune_jobs" / "figures" / "recorded" / "demo.csv"
COMPARED = {
    **{"load": 0.7, "jobs": "load 70%", "protocol": "unseen", "warmup": 100, "metric": "slowdown"},
    **{"jobsets": 100, "episodes": 1, "num_jobs": 900, "world": "deeprm", "rules": "released"},
    **{"window": 700, "unfinished": 0, "seeds": 1, "trained_at": 0.8, "trained_on": "load 80%"},
    **{"interval_over": "jobsets", "told": ""},
}


def compared(*policies: tuple[str, bool, float], best: str, chance: float = -1.0) -> list[Any]:
    """Rows of a comparison: keys, whether learned, and slowdowns; `chance` is a difference's low
    end."""
    return [
        {
            **COMPARED,
            **{"policy": f"{key}*" if key == "tetris" else key, "key": key, "learned": learned},
            **{"slowdown": value, "slowdown_low": value - 1, "slowdown_high": value + 1},
            **{"utilization": value / 10, "wait": 10 * value, "longest_wait": 100 * value},
            **{"best": key == best, "difference": 1, "difference_low": -chance},
            "difference_high": 2,
        }
        for key, learned, value in policies
    ]


@pytest.mark.parametrize("quick", [False, True])
def test_every_line_is_a_command_that_the_user_can_give(tmp_path: Path, quick: bool) -> None:
    one = Demo(tmp_path, "today", quick)
    lines = one.command_lines()
    assert [line[0] for line in lines] == [
        *("train", "compare", "figure", "trace", "replay", "train", *["adapt"] * len(one.tasks))
    ]
    for name, *words in lines:
        with click.Context(cli.metasched) as context:
            command = cli.metasched.get_command(context, name)
            assert command is not None
            command.make_context(name, list(words))


@pytest.mark.parametrize("num_done", [0, 2, 4, None])
def test_what_there_is_by_now_is_said_also_if_the_rest_is_stopped(
    num_done: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = []
    monkeypatch.setattr(Demo, "summary", lambda self: [("Trained", "much")])

    def main(line: list[str], **options: object) -> int | None:
        given.append(line[0])
        return 130 if len(given) - 1 == num_done else None

    monkeypatch.setattr(cli.metasched, "main", main)
    status = cli.run(demo.command, ["--runs", str(tmp_path)])
    said = capsys.readouterr().out
    num_lines = len(Demo(tmp_path, "x").command_lines())
    assert status == (0 if num_done is None else 130)
    assert len(given) == (num_lines if num_done is None else num_done + 1)
    assert f"[{len(given)}/{num_lines}] metasched {given[-1]}" in said
    assert ("MLflow" in said) == (num_done != 0)
    assert ("Trained  much" in said) == (num_done is None)
    assert said.startswith(f"{num_lines} commands, about three minutes on two cores")


@pytest.mark.parametrize("form", ["rows", "file"])
def test_a_verdict_compares_with_the_best_of_all_rules_of_its_table(
    form: str, tmp_path: Path
) -> None:
    """A rule that training does not know, such as hold, may turn a verdict around."""
    own, others = ("demo", True, 2.7), [("sjf", False, 3.1), ("tetris", False, 3.0)]
    hold = ("hold", False, 2.0)

    def said(rows: list[Any]) -> str:
        write_table(tmp_path / "comparison.csv", rows)
        read = read_table(tmp_path / "comparison.csv", ()) if form == "file" else rows
        (sentence,) = verdicts(read)
        assert markdown_rows(rows).startswith("- " + sentence.replace("*", r"\*") + "\n\n")
        return sentence

    assert said(compared(*others, own, best="demo")) == (
        "demo at load 70% has a slowdown of 2.70 [1.70, 3.70], 10.0% less than tetris* with 3.00, "
        "the best of sjf and tetris (paired difference 1.00 [1.00, 2.00]); utilization 27.0% "
        "(30.0%), mean wait 27.0 (30.0), longest wait 270.0 (300.0)."
    )
    assert said(compared(*others, hold, own, best="hold")).startswith(
        "demo at load 70% has a slowdown of 2.70 [1.70, 3.70], 35.0% more than hold with 2.00, "
        "the best of sjf, tetris and hold (paired difference 1.00 [1.00, 2.00]); utilization "
    )
    level = said(compared(*others, hold, own, best="hold", chance=1.0))
    assert "tetris and hold (paired difference 1.00 [-1.00, 2.00], not significant); " in level
    assert verdicts(compared(own, best="demo")) == []
    assert "the best of all 9 heuristics of the table" in said(
        compared(own, *((f"rule{k}", False, 4.0) for k in range(9)), best="demo")
    )


def test_the_summary_is_that_of_the_tables_with_all_their_rules(tmp_path: Path) -> None:
    one = Demo(tmp_path, "x")
    policies = [("sjf", False, 3.1), ("hold", False, 2.5), ("demo", True, 2.4)]
    write_table(one.folder("compared") / "comparison.csv", compared(*policies, best="demo"))
    names = [*demo.LOG_RULES.split(","), demo.LOG_POLICY]
    write_table(
        one.folder("replayed") / "replay.csv",
        [
            {
                **{"policy": name, "bounded_slowdown": 50 - k, "mean_wait": 60, "utilization": 0.5},
                "longest_wait": 3600 * k,
            }
            for k, name in enumerate(["as recorded", *names])
        ],
    )
    for number, task in enumerate(demo.TASKS):
        last = 2.0 if number == 0 else 0.9
        side = {"utilization": 0.5, "wait": 6, "longest_wait": 60}
        rows = [(0, "before", 1.2, 0), (1, "after", 0.6, 0), (3, "after", last, 1)]
        rules = [("sjf", 1.5), ("tetris:0.1", 1.0), ("hold:3", 0.8)]
        write_table(
            one.folder(f"task-{task}") / "adaptation.csv",
            [
                *(
                    {
                        "step": step,
                        "policy": name,
                        "kept": kept,
                        "cost": cost,
                        "ratio": cost,
                        **side,
                    }
                    for step, name, cost, kept in rows
                ),
                *(
                    {"policy": name, "cost": cost, "ratio": cost, **side, "longest_wait": 90 * cost}
                    for name, cost in rules
                ),
            ],
        )
    lines = list(one.summary())
    (trained,) = verdicts(compared(*policies, best="demo"))
    assert lines[:2] == [("Trained", trained), ("", demo.SEEDS)]
    assert "the best of sjf and hold" in trained
    assert lines[2:4] == [
        (
            "Log",
            "on the log example, hpc-order has a bounded slowdown of 45.00, 2.2% less than "
            "wspt:skip with 46.00, the best of fcfs:easy, sjf:easy, saf:easy and wspt:skip; "
            "utilization 50.0% (50.0%), mean wait 60 s (60 s), longest wait 5 h (4 h). It is one "
            "log, so there is no interval.",
        ),
        (
            "Adapted",
            "to unseen tasks with hidden priorities (3): after at most three steps, 2.00, 0.90, "
            "0.90 times the cost of the best of sjf, tetris and hold on the task (1.20 on the "
            "mean before steps); utilization 50.0% (50.0%), mean wait 6.0 (6.0), longest wait "
            "60.0 (72.0).",
        ),
    ]
    assert [label for label, _ in lines[4:]] == ["Picture", "", "Next", "", ""]


def test_what_is_said_of_other_seeds_is_recorded() -> None:
    rows = read_table(RECORDED, ("trained", "key", "learned", "slowdown"))
    won = 0
    for seed in range(5):
        own = {row["key"]: row for row in rows if row["trained"] == str(seed)}
        assert set(own) == {*demo.RULES.split(","), "demo"}
        others = [float(own[name]["difference_low"]) for name in demo.RULES.split(",")]
        won += own["demo"]["best"] == "True" and min(others) > 0
    together = {row["key"]: row for row in rows if row["trained"] == "all"}
    best = min(demo.RULES.split(","), key=lambda name: float(together[name]["slowdown"]))
    mean, low, high = (float(together[best][f"difference{end}"]) for end in ("", "_low", "_high"))
    assert together["demo"]["seeds"] == "5"
    assert f"on {together['demo']['jobsets']} jobsets: it wins in {won} of 5" in demo.SEEDS
    assert f"{mean:.2f} [{low:.2f}, {high:.2f}] lower than that of {best}" in demo.SEEDS
    page = " ".join((RECORDED.parents[1] / "operation.md").read_text(encoding="utf-8").split())
    assert f"by {mean:.2f} [{low:.2f}, {high:.2f}]" in page


@pytest.mark.integration
@pytest.mark.slow
def test_the_whole_demo_leaves_runs_with_figures_in_the_store(
    local_ray: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    few = ("training.jobsets=20", "training.validation_jobsets=20", "evaluation.jobsets=5")
    monkeypatch.setattr(demo, "QUICK", (*demo.QUICK, *few))
    meta = ("training.tasks=2", "training.jobsets=2", "training.episodes_per_jobset=2")
    monkeypatch.setattr(demo, "QUICK_META", (*demo.QUICK_META, *meta))
    monkeypatch.setattr(demo, "QUICK_JOBSETS", 4)
    monkeypatch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 4)
    assert cli.run(demo.command, ["--quick", "--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "4 unseen jobsets" in said
    assert said.count("\nafter 3 steps") == len(demo.QUICK_TASKS)
    assert said.strip().splitlines()[-1].startswith("MLflow")
    (run,) = tmp_path.glob("demo-run-*")
    for name in ("schedules", "learning-curves"):
        assert (run / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with next(tmp_path.glob("demo-compared-*/comparison.csv")).open() as file:
        rows = list(csv.DictReader(file))
    assert {row["key"] for row in rows} == {*demo.RULES.split(","), "demo"}

    # The screen, the run and the registered model say the same.
    (verdict,) = verdicts(rows)
    assert f" Trained {verdict} Log " in " ".join(said.split())
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    (model,) = client.search_model_versions(f"name = '{demo.MODEL}'")
    noted = client.get_run(str(model.run_id)).data.tags["mlflow.note.content"]
    for note in (noted, str(model.description)):
        assert verdict.replace("*", r"\*") in note
        assert re.search(r"the best of sjf, packer and tetris, has", note)
    copied = {path.name for path in (tmp_path / "mlartifacts").rglob("figures/*")}
    assert copied >= {"schedules.png", "learning-curves.png", "comparison.csv", "adaptation.csv"}
