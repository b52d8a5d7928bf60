"""The command line: quick help, one-line errors, exit statuses."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import preset_names
from tests.waiting import PATIENCE_S, started, wait_for
from tune_jobs import cli


def failing(error: BaseException) -> click.Command:
    @click.command(name="failing")
    def command() -> None:
        raise error

    return cli.add_debug_option(command)


def run_python(*args: str, timeout: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=timeout, check=False
    )


def test_help_lists_every_command_and_imports_no_heavy_library():
    code = (
        "import sys; from tune_jobs import cli; status = cli.run(cli.metasched, ['--help']);"
        "light = ('adapt', 'compare', 'figure', 'results', 'steer', 'study', 'train', 'tune');"
        "status += sum(cli.run(cli.metasched, [name, '--help']) for name in light);"
        "heavy = {'ray', 'torch', 'mlflow', 'numba', 'numpy'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(status)"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    for name, summary in cli.COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", done.stdout, re.MULTILINE)
    for group in cli.GROUPS:
        assert f"\n{group}:\n" in done.stdout
    assert "Examples:" in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_exists_and_shows_examples(name, capsys):
    assert cli.run(cli.metasched, [name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"metasched {name}" in shown
    assert "Examples:" in shown
    assert "--debug" in shown


def test_version_names_the_program(capsys):
    assert cli.run(cli.metasched, ["--version"]) == 0
    assert capsys.readouterr().out.startswith("metasched ")


@pytest.mark.parametrize("args", [["--version", "--verbose"], ["--verbose", "--version"]])
def test_a_bug_report_has_versions_and_names_of_variables(args, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "hunter2")
    assert cli.run(cli.metasched, args) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("metasched ")
    assert re.search(rf"^version.ray +{re.escape(version('ray'))}$", shown, re.MULTILINE)
    assert "MLFLOW_TRACKING_TOKEN" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["train", "deeprm-expert"], "rollout:POLICY:FUTURES"),
        (
            ["train", "deeprm-smoke", "--set", "training.algorithm=expert_iteration"],
            "rollout:POLICY:FUTURES",
        ),
        (["results", "expert"], "rollout:POLICY:FUTURES"),
        (["figure", "deeprm-fig6", "--runs", "run"], "learning-curves"),
        (["specialists", "run"], "study RUN --specialists"),
        (["record", "panda-elastic", "out.parquet"], "metasched.record"),
        (["guard", "runs/mine"], "compare --policies RUN --decide"),
        (["choose", "runs/mine-*"], "metasched.choose"),
        (["join", "{a}.csv"], "metasched.join"),
        (
            ["train", "fuzzy-td", "--set", "task.workload.trace=a.csv"],
            "hpc and deeprm read job logs",
        ),
        (["train", "fuzzy-td", "--set", "task.world.growth=utility"], "grows first"),
        (["trace", "example", "--calibrate"], "metasched replay FILE --calibrate"),
        (["adapt", "run", "--objective", "makespan"], "give --task objective=NAME"),
        (["starts", "fcfs:easy", "--past", "a.txt"], "shadow POLICY --starts LOG --ticks 1"),
        (["steer", "fcfs:easy", "--longest-wait", "1d"], "give --max-wait"),
        (["shadow", "fcfs:easy", "--json"], "writes lines of JSON"),
        (["whatif", "example", "--slurm-conf", "a.conf"], "give --site FILE"),
        (["train", "--presets"], "give --show presets"),
        (["train", "deeprm", "--no-track"], "--set tracking.enabled=false"),
        (["figure", "deeprm-fig4", "--table", "a.csv"], "give --rows FILE.csv"),
        (["report", "example", "--force"], "replaces an older one"),
    ],
)
def test_a_name_that_went_is_answered_with_what_took_its_place(words, instead, capsys):
    assert cli.run(cli.metasched, words) == 2
    message = capsys.readouterr().err.strip()
    assert " was removed: " in message
    assert instead in message
    assert len(message.splitlines()) == 1


def test_an_unknown_command_is_answered_with_the_nearest(capsys):
    assert cli.run(cli.metasched, ["trian"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean 'train'?" in error


@pytest.mark.parametrize("args", [["--foo"], ["train", "--foo"], ["train", "--seed", "x"]])
def test_a_wrong_option_gives_one_line_and_status_2(args, capsys):
    assert cli.run(cli.metasched, args) == 2
    error = capsys.readouterr().err
    assert error.startswith("metasched: ")
    assert error.count("\n") == 1
    assert "--help" in error


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        ("train deeprm --lr 3", "--set training.lr=VALUE"),
        ("train deeprm --iterations=3", "--set training.iterations=VALUE"),
        ("train --every 3", "--set checkpoint.every=VALUE or --set evaluation.every=VALUE"),
        ("tune smoke --num-runners 3", "--set resources.num_runners=VALUE"),
        ("train deeprm lr=3", "--set training.lr=3"),
        ("train deeprm training.lr=3 x", "--set training.lr=3"),
        ("train --sed 3", "'--seed'"),
        ("study run --rates 1,2", "metasched.study(rates=VALUE)"),
        ("compare --load 0.7", "'--loads'"),
        ("compare --polices sjf", "'--policies'"),
        ("compare sjf,hpc-order", "--policies sjf,hpc-order"),
        ("compare sjf hold:12", "--policies sjf,hold:12"),
        ("replay example fcfs:easy", "--policies fcfs:easy"),
        ("train deeprm --learning-rate 3", "--set training.lr=VALUE"),
    ],
)
def test_an_option_that_is_none_is_answered_with_what_was_meant(args, meant, capsys):
    assert cli.run(cli.metasched, args.split()) == 2
    error = capsys.readouterr().err
    assert f": did you mean {meant}? (metasched {args.split()[0]} --help says" in error


@pytest.mark.parametrize(
    "args",
    ["train --xyzzy", "compare sfj", "train deeprm sjf", "sync --lr 3", "sync lr=3", "ui --hlp"],
)
def test_nothing_is_guessed_where_nothing_is_like_it(args, capsys):
    assert cli.run(cli.metasched, args.split()) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train deeprm-ppo --set training.learning_rate=1", "did you mean 'training.lr'?"),
        ("train deeprm-ppo --set training.entropy_coeff=1", "did you mean 'training.entropy'?"),
        ("train deeprm --set learning_rate=1", "did you mean 'training.lr'?"),
        (
            "compare --policies sjf --decide",
            "sjf is a heuristic, but a trained policy is needed here: a run directory",
        ),
    ],
)
def test_a_name_of_another_kind_is_answered_with_what_was_meant(line, words, capsys):
    assert cli.run(cli.metasched, line.split()) == 2
    assert words in capsys.readouterr().err


def test_no_list_is_cut_inside_of_a_word(capsys):
    assert cli.run(cli.metasched, ["train", "nothing-like-it"]) == 2
    error = capsys.readouterr().err
    assert "…" in error
    assert set(re.findall(r"[\w-]+", error.partition("known are ")[2])) <= set(preset_names())


def test_no_command_shows_the_help_with_status_2(capsys):
    assert cli.run(cli.metasched, []) == 2
    captured = capsys.readouterr()
    assert "Evaluate:" in captured.out + captured.err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("load 3 is out of reach"), 2, "metasched: load 3 is out of reach"),
        (KeyError("x"), 1, "metasched: failed with KeyError: 'x' (--debug shows where)"),
        (
            RuntimeError("one\ntwo"),
            1,
            "metasched: failed with RuntimeError: one (--debug shows where)",
        ),
        (click.exceptions.Exit(130), 130, ""),
        (SystemExit(143), 143, ""),
    ],
)
def test_what_a_command_raises_becomes_a_status_and_a_line(error, status, line, capsys):
    assert cli.run(failing(error), []) == status
    assert capsys.readouterr().err.strip() == line


def test_an_interrupt_gives_status_130(capsys):
    assert cli.run(failing(KeyboardInterrupt()), []) == 130
    assert capsys.readouterr().err.strip() == "metasched: interrupted"


def test_debug_shows_the_traceback_wherever_it_stands(capsys):
    assert cli.run(failing(KeyError("x")), ["--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert cli.run(failing(KeyError("x")), []) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert logging.getLogger("tune_jobs").level == logging.NOTSET


def test_the_handler_of_sigterm_is_put_back():
    before = signal.getsignal(signal.SIGTERM)
    cli.run(cli.metasched, ["--version"])
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_unwinds_the_program(tmp_path, number, status):
    code = (
        "import click, pathlib, sys, time\n"
        "from tune_jobs import cli\n"
        "@click.command(name='sleep')\n"
        "def command():\n"
        "    try:\n"
        "        pathlib.Path(sys.argv[1], 'began').touch()\n"
        "        time.sleep(600)\n"
        "    finally:\n"
        "        pathlib.Path(sys.argv[1], 'cleaned').touch()\n"
        "sys.exit(cli.run(command, []))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with started(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for((tmp_path / "began").exists, "the beginning", process=process)
        os.kill(process.pid, number)
        _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status
    assert "Traceback" not in error
    assert (tmp_path / "cleaned").exists()


SAYING = """
import os, sys
from tune_jobs.commands import command_line
from tune_jobs.commands.shared import AsJson
from tune_jobs.terminal.output import print_json
from tune_jobs.terminal.running import run

@command_line.command("say")
def command(*, as_json: AsJson = False):
    print("a library of Python")
    os.write(1, b"a library in C++\\n")
    os.system("echo a process")
    print_json({"value": 1})
    print("the end")

status = run(command, sys.argv[1:])
print("stdout as before")
sys.exit(status)
"""


def test_json_stands_alone_on_stdout_whatever_libraries_and_processes_say():
    said = ["a library of Python", "a library in C++", "a process", "the end"]
    done = run_python("-c", SAYING, "--json")
    assert done.returncode == 0
    shown, _, rest = done.stdout.partition("}")
    assert json.loads(shown + "}") == {"value": 1}
    assert rest.strip() == "stdout as before"
    assert sorted(done.stderr.splitlines()) == sorted(said)
    done = run_python("-c", SAYING)
    assert all(line in done.stdout.splitlines() for line in said)
    assert done.stderr == ""
