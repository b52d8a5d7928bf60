"""Options that a world declares: commands offer them."""

import json
import re
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner, Result

from cluster_env.core.errors import InputError
from cluster_env.core.registry import nearest
from cluster_env.core.spec import WORLDS, CliOption
from tune_jobs import cli, compare
from tune_jobs.commands.flags import Numbers, Time
from tune_jobs.measuring.choices import choose_config
from tune_jobs.processes.ray_session import _start_limit_s


def run(*args: str) -> Result:
    line = ["--policies", "sjf", "--jobsets", "3", "--json", *args]
    return CliRunner().invoke(compare.command, line, catch_exceptions=False)


@pytest.mark.parametrize(
    ("preset", "listed", "other"),
    [("deeprm", "--loads VALUE,...", "--max-wait"), ("hpc-order", "--max-wait TIME", "--loads")],
)
def test_help_lists_what_the_world_at_hand_declares(preset, listed, other, capsys) -> None:
    assert cli.run(cli.metasched, ["compare", "--config", preset, "--help"]) == 0
    shown = capsys.readouterr().out.partition("Options in the world")[2]
    assert "--window STEPS" in shown or "--window SECONDS" in shown
    assert listed in shown
    assert other not in shown


def test_help_without_a_world_at_hand_says_where_its_options_are_listed(capsys) -> None:
    assert cli.run(cli.metasched, ["compare", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "metasched compare --config PRESET --help lists those of the world" in shown
    assert "--window STEPS" not in shown


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_no_help_lists_an_option_twice_or_a_bound_of_the_memory(name, capsys) -> None:
    assert cli.run(cli.metasched, [name, "--help"]) == 0
    shown = capsys.readouterr().out
    options = re.findall(r"^  (--[a-z-]+)", shown.partition("\nOptions:")[2], re.MULTILINE)
    assert "--help" in shown
    assert len(options) == len(set(options))
    assert "<=x<=9" not in shown
    assert "x<=1000000" not in shown


@pytest.mark.parametrize("name", ["replay", "trace", "whatif"])
def test_a_command_about_a_log_lists_no_options_of_another_world(name, capsys) -> None:
    assert cli.run(cli.metasched, [name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Options in the world hpc:" in shown
    assert "Options in the world deeprm:" not in shown


@pytest.mark.parametrize("line", ["trace --max-wait 5d", "replay --window 5"])
def test_an_option_without_an_effect_is_neither_listed_nor_taken(line, capsys) -> None:
    name, option, value = line.split()
    assert cli.run(cli.metasched, [name, "--help"]) == 0
    assert f"\n  {option} " not in capsys.readouterr().out
    assert cli.run(cli.metasched, [name, "example", option, value]) == 2
    assert f"{option} has no effect here, so leave it out" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0.7,1.1", "70%,110%", "70 %, 1.1"])
def test_values_may_be_percentages(text) -> None:
    assert Numbers().convert(text, None, None) == pytest.approx([0.7, 1.1])


@pytest.mark.parametrize("words", [("--loads", "0.7;1.1"), ("--at", " ,"), ("--at", "nan")])
def test_values_that_are_no_numbers_are_refused(words, capsys) -> None:
    assert cli.run(cli.metasched, ["compare", *words]) == 2
    assert "'--at': values are numbers like 0.7,1.1 or 70%, not" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1.5h", 5400), ("5d", 432_000), ("0.2", 0.2), ("60", 60)]
)
def test_a_time_has_a_unit_or_is_one_of_seconds(text, seconds) -> None:
    assert Time().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["5x", "soon", "-1", "nan", "inf", "0"])
def test_what_is_no_time_is_refused(text) -> None:
    with pytest.raises(click.BadParameter):
        Time(0.001).convert(text, None, None)


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "inf", "nan"])
def test_the_time_that_ray_may_take_to_start_is_a_setting(seconds, monkeypatch) -> None:
    monkeypatch.setenv("METASCHED_RAY_START_S", "600")
    assert _start_limit_s() == 600
    monkeypatch.setenv("METASCHED_RAY_START_S", seconds)
    with pytest.raises(InputError, match="METASCHED_RAY_START_S is a number of seconds"):
        _start_limit_s()


@pytest.mark.parametrize(("name", "near"), [("sjf", []), ("EASY", ["easy"]), ("sfj", ["sjf"])])
def test_a_hint_is_another_name_however_it_is_written(name, near) -> None:
    assert nearest(name, ["easy", "sjf", "tetris"]) == near


def test_an_option_changes_its_setting_and_what_goes_with_it() -> None:
    row = json.loads(run("--window", "120", "--rules", "released").stdout)[0]
    assert (row["window"], row["rules"]) == (120, "released")
    task = choose_config(None, [], {"window": 120}, []).task
    assert (task.workload.window, task.world.max_time) == (120, 1200)


def test_the_axis_of_a_world_may_have_an_option_of_its_name() -> None:
    assert run("--loads", "0.5,0.9").stdout == run("--at", "0.5,0.9").stdout


def test_a_new_option_is_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = WORLDS.get("deeprm")
    slots = CliOption("world.cluster.num_slots", "Jobs that the policy sees.")
    options = {**spec.presentation.options, "slots": slots}
    changed = replace(spec, presentation=replace(spec.presentation, options=options))
    monkeypatch.setitem(WORLDS._things, "deeprm", changed)
    assert (
        "Jobs that the policy sees"
        in CliRunner().invoke(compare.command, ["--config", "deeprm", "--help"]).stdout
    )
    few, many = (json.loads(run("--slots", slots).stdout)[0] for slots in ("1", "10"))
    assert few["slowdown"] > many["slowdown"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--window", "x"], "window"),
        (["--window", "0"], "at least 1 step"),
        (["--rules", "papr"], "paper"),
        (
            ["--rules", "paper", "--set", "task.world.rules=paper"],
            "set the same value; give one of them",
        ),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(args: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        run(*args)
    assert "\n" not in str(caught.value)


def test_what_the_world_of_the_task_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="--speed has no effect in the world deeprm"):
        choose_config(None, [], {"speed": "2"}, [])
