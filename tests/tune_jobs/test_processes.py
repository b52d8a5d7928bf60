"""Commands side by side: names before lines, what a failure ends, and what a signal ends."""

import pytest

from tune_jobs.experiments.processes import run_several

LIST, WRONG = ["figure", "--list"], ["compare", "--policies", "nobody"]


@pytest.mark.integration
def test_each_line_follows_the_name_of_what_printed_it(capfd):
    assert run_several({"one": LIST, "two": ["results", "--list"]}, at_once=2) == 0
    lines = capfd.readouterr().out.splitlines()
    assert {line.partition("  ")[0] for line in lines} == {"one", "two"}
    assert any(line.startswith("one  ") and "deeprm-fig4" in line for line in lines)
    assert any(line.startswith("two  ") and "objectives" in line for line in lines)


@pytest.mark.integration
def test_none_begins_after_one_that_failed_and_its_status_is_kept(capfd):
    commands = {"one": LIST, "two": WRONG, "three": LIST}
    assert run_several(commands, at_once=1) == 2
    said = capfd.readouterr().out
    assert "one  begins; 2 more wait" in said
    assert "nobody" in said
    assert "three" not in said


@pytest.mark.integration
def test_one_that_fails_ends_those_beside_it(tmp_path):
    long = ["train", "deeprm-ppo", "--set", "training.iterations=100000", "--runners", "0"]
    commands = {"long": [*long, "--run", str(tmp_path / "long")], "wrong": WRONG}
    assert run_several(commands, at_once=2) == 2  # and it comes back
