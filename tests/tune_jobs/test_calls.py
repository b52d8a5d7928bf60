"""Calls of commands, each in its process: lines by name, what a failure ends, and what stays."""

from dataclasses import replace

import pytest

from tune_jobs.experiments.calls import Call, carry_out_all

LOG = Call("trace", {"path": "no-such.csv"})


def generated(folder, **options) -> Call:
    return Call("generate", {"path": str(folder / "jobs.csv"), "jobs": 20, **options})


@pytest.mark.integration
def test_each_line_follows_the_name_of_what_printed_it(tmp_path, capfd):
    calls = {name: generated(tmp_path / name) for name in ("one", "two")}
    assert carry_out_all(calls, at_once=2) == 0
    lines = capfd.readouterr().out.splitlines()
    assert {line.partition("  ")[0] for line in lines} == {"one", "two"}
    assert "one  begins; 1 more wait" in lines
    for name in calls:
        assert any(line.startswith(f"{name}  ") and "jobs.csv" in line for line in lines)
        assert (tmp_path / name / "jobs.csv").is_file()


@pytest.mark.integration
def test_what_names_a_run_waits_until_that_has_ended(tmp_path, capfd):
    """With room for all at once; ``a-1`` is another folder than ``a``."""
    first = replace(generated(tmp_path / "a"), run=tmp_path / "a")
    then = replace(LOG, options={"path": str(tmp_path / "a" / "jobs.csv")}, run=tmp_path / "b")
    calls = {"first": first, "then": then, "beside": generated(tmp_path / "a-1")}
    assert carry_out_all(calls, at_once=4) == 0
    begun = [line.split()[0] for line in capfd.readouterr().out.splitlines() if " begins;" in line]
    assert begun == ["first", "beside", "then"]


@pytest.mark.integration
def test_one_that_fails_ends_those_beside_it_none_begins_and_its_status_is_kept(tmp_path, capfd):
    long = generated(tmp_path / "long", jobs=1_000_000)
    calls = {"long": long, "wrong": LOG, "later": generated(tmp_path)}
    assert carry_out_all(calls, at_once=2) == 2
    said = capfd.readouterr().out
    assert "no-such.csv" in said
    assert not any(line.startswith("later") for line in said.splitlines())
    assert not [*tmp_path.rglob("jobs.csv")]


def test_the_line_of_a_call_is_that_which_a_shell_takes():
    options = {"guard": True, "set": ["a=1", "b=x y"], "processors": 4, "decide": False}
    call = Call("compare", {"policies": "hpc-*", **options})
    assert str(call) == (
        "metasched compare --policies 'hpc-*' --guard --set a=1 --set 'b=x y' --processors 4"
    )
    typed = Call("compare", {**options, "jobsets": 20}).values()
    assert typed["task_options"] == {"processors": "4"}
    assert (typed["guard"], typed["decide"], typed["num_jobsets"]) == (True, False, 20)
    assert typed["changes"] == ("a=1", "b=x y")
