"""Every command is a function with the same options, or is named here with the reason."""

import inspect

import click
import numpy as np
import pandas as pd
import pytest

import metasched
from tune_jobs import cli

WITHOUT = {
    "demo": "it is a tour on a terminal",
    "ui": "it is a process that serves pages",
    "sync": "it sends records to a server",
    "shadow": "it looks at a live site until it is stopped",
    "steer": "it acts at a live site until it is stopped",
}

NAMES = {
    "set": ("changes",),
    "config": ("on", "config"),
    "policy": ("policies",),
    "rule": ("policies",),
    "no-track": ("track",),
    "evaluate": ("num_held_out",),
    "from": ("since",),
    "to": ("until",),
}
"""Names in Python of options that are called otherwise there; counts begin with ``num_``."""

ON_A_TERMINAL = {"json", "wide", "list", "sweeps", "presets", "help", "debug"}
"""What a terminal shows: of a function that is its result."""

ELSEWHERE = {
    "train": {
        **{"seed": "changes", "runs": "changes", "runners": "changes", "tracking-uri": "changes"},
        **{"no-track": "changes", "resume": "resume", "continue": "resume"},
        **{"print-config": "load_config", "settings": "load_config"},
    },
    "adapt": {
        **{"trace": "task", "objective": "task"},
        **{"evaluate": "compare", "keep": "compare", "track": "compare"},
    },
    "compare": {"out": "to_frame", "track": "to_frame"},
    "figure": {"track": "the command records in MLflow"},
}
"""Options of commands without a parameter of their own, and what stands in their place."""


def function_of(command: str) -> inspect.Signature:
    return inspect.signature(getattr(metasched, command))


def options_of(name: str) -> list[str]:
    command = cli.metasched.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    flags = [max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)]
    return [flag.removeprefix("--") for flag in flags]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_is_a_function_or_named_as_having_none(name: str) -> None:
    assert (name in metasched.__all__) != (name in WITHOUT)
    if name in WITHOUT:
        return
    assert f"metasched {name}" in (inspect.getdoc(getattr(metasched, name)) or ""), name
    parameters = function_of(name).parameters
    for option in options_of(name):
        if option in ON_A_TERMINAL or option in ELSEWHERE.get(name, {}):
            continue
        own = option.replace("-", "_")
        names = (own, f"{own}s", f"num_{own}", f"{own}_s", *NAMES.get(option, ()))
        assert set(names) & set(parameters), f"--{option} of {name}"


def test_what_stands_elsewhere_is_an_option_still() -> None:
    assert set(WITHOUT) < set(cli.COMMANDS)
    for name, options in ELSEWHERE.items():
        assert set(options) <= set(options_of(name))


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
    again = metasched.figure("win-rate", table=tmp_path / "win-rate.csv")
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
