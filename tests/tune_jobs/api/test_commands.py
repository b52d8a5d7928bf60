"""Every command is a function with the same options, or is named here with the reason."""

import inspect

import numpy as np
import pandas as pd
import pytest

import metasched
from tune_jobs import cli
from tune_jobs.commands.command_line import OptionsCommand
from tune_jobs.commands.flags import declared

WITHOUT = {
    "demo": "it is a tour on a terminal",
    "ui": "it is a process that serves pages",
    "sync": "it sends records to a server",
    "shadow": "it looks at a live site until it is stopped",
    "steer": "it acts at a live site until it is stopped",
}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_is_a_function_or_named_as_having_none(name: str) -> None:
    assert (name in metasched.__all__) != (name in WITHOUT)
    if name in WITHOUT:
        return
    command = cli.metasched.get_command(None, name)  # type: ignore[arg-type]
    function = getattr(metasched, name)
    explained = inspect.getdoc(function) or ""
    assert f"metasched {name}" in explained
    assert isinstance(command, OptionsCommand)
    assert command.taken is not None
    for field in declared(command.taken):
        assert field.name in inspect.signature(function).parameters
        assert f"\n    {field.name}: " in explained


def test_commands_without_a_function_are_commands_still() -> None:
    assert set(WITHOUT) < set(cli.COMMANDS)


def test_an_option_of_the_world_is_given_by_a_keyword_or_in_a_mapping(tmp_path) -> None:
    by_keyword, in_mapping = tmp_path / "keyword.csv", tmp_path / "mapping.csv"
    metasched.generate(by_keyword, num_jobs=30, processors=64)
    metasched.generate(in_mapping, num_jobs=30, task_options={"processors": 64})
    assert by_keyword.read_text() == in_mapping.read_text()


def test_options_of_a_world_reach_commands(tmp_path) -> None:
    path = tmp_path / "jobs.csv"
    jobs = metasched.generate(path, num_jobs=30, processors=64)
    assert jobs["processors"].max() <= 64
    pd.testing.assert_frame_equal(jobs, pd.read_csv(path), check_dtype=False)
    report = metasched.replay(
        path, ["fcfs:easy"], processors=128, changes={"task.workload.stretch": 1}
    )
    assert report["replay"]["jobs"].item() == 30
    assert "128 processors" in repr(report).splitlines()[0]
    with pytest.raises(metasched.InputError, match="did you mean 'processors'"):
        metasched.trace(path, procesors=64)
    change = metasched.whatif(path, ["load=0.5"], processors=64, out=tmp_path / "whatif")
    assert (tmp_path / "whatif" / "whatif.png").exists()
    assert change["now-and-then"]["mean_wait"].iloc[1] <= change["now-and-then"]["mean_wait"][0]
    weeks = metasched.trace(path, processors=64)["by-week"]
    assert weeks["jobs"].sum() == 30


def test_a_figure_is_given_and_kept_where_that_is_asked(tmp_path) -> None:
    drawn = metasched.figure("win-rate", at=[0.5], num_jobsets=2, out=tmp_path)
    assert drawn.axes
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".jsonl", ".png"}
    again = metasched.figure("win-rate", rows=[tmp_path / "win-rate.csv"])
    assert len(again.axes) == len(drawn.axes)
    with pytest.raises(metasched.InputError, match="does not use --trace"):
        metasched.figure("win-rate", traces=["jobs.csv"])


def test_a_guard_decides_and_keeps_its_decision(tmp_path, tuned_on_few) -> None:
    decision = metasched.guard("deeprm-operation", num_jobsets=4, later=True, out=tmp_path / "d")
    assert (tmp_path / "d").exists()
    reference = decision.data["reference"]
    assert set(decision) == {"candidates", "later"}
    assert decision["later"]["policy"].iloc[0] == reference  # also one with a tuned number
    assert decision["candidates"]["mean"].dtype == np.float64


def test_results_are_listed(tmp_path) -> None:
    names = metasched.results()
    assert {"name", "about", "minutes"} == set(names)
    calls = metasched.results("operation", dry_run=True, out=tmp_path / "new")
    assert len(calls) > 1
    assert not calls["done"].any()
    assert not (tmp_path / "new").exists()


def test_results_show_themselves_as_tables() -> None:
    rows = metasched.compare(["sjf", "packer"], num_jobsets=4)
    assert repr(rows) == metasched.format_rows(rows)
    assert list(rows.to_frame()["policy"]) == [row["policy"] for row in rows]
    task = metasched.load_config("deeprm").task.build()
    jobsets = task.jobsets(metasched.Split.HELD_OUT, range(2))
    schedule = metasched.evaluate(metasched.get_heuristic("sjf", task.world), jobsets, task.world)
    shown = repr(schedule).splitlines()
    assert shown[0] == f"Schedule of {schedule.job.size} jobs in 2 episodes, capacity 10, 10"
    assert shown[1].split()[:4] == ["episode", "job", "arrival", "start"]
    assert len(shown) == 8
    summary = metasched.summarize(schedule)
    assert f"{summary.mean('slowdown'):.4f}" in repr(summary)
    assert "array" not in repr(schedule) + repr(summary)
