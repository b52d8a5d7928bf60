"""``metasched results``: the commands that it gives, and how it goes on after a stop."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from cluster_env.core.errors import InputError
from rllib_configs.loading import load_config
from tests.conftest import REPOSITORY
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tests.waiting import PATIENCE_S, started, wait_for
from tune_jobs import cli
from tune_jobs.experiments import recording, running
from tune_jobs.experiments.commands import list_commands
from tune_jobs.experiments.definition import experiment_names, in_order, load_experiment
from tune_jobs.figures import FIGURES
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.runs.history import History
from tune_jobs.terminal.running import run
from tune_jobs.terminal.tables import read_table

RECORDED = REPOSITORY / "tune_jobs" / "figures" / "recorded"

TINY = {
    "seeds": [3],
    "runs": [
        {
            "name": "tiny-{load}-{seed}",
            "preset": "deeprm-smoke",
            "iterations": 2,
            "settings": {"task.workload.load": "{load}", "tracking.enabled": False},
            "vary": {"load": [0.7]},
        }
    ],
    "steps": [{"command": "compare --policies sjf,{out}/tiny-* --jobsets 5 --out {out}/compared"}],
}


def write(path, **changes):
    path.write_text(yaml.safe_dump({**TINY, **changes}))
    return str(path)


def shown(capsys, *args) -> list[str]:
    assert run(cli.metasched, ["results", *args, "--dry-run"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture(autouse=True)
def committed(monkeypatch):
    """All that makes results is in the commit, whatever stands in the working tree."""
    made = recording.provenance()
    monkeypatch.setattr(recording, "provenance", lambda: {**made, "git.dirty": "no"})


# How many commands of each kind, counted by hand in the loops that drove the results before.
COUNTS = {
    "deeprm": {"train": 12, "figure": 3, "compare": 4},
    "ppo": {"train": 20, "figure": 6, "compare": 4},
    "generalist": {"train": 25, "figure": 1, "compare": 5},
    "objectives": {"train": 40, "figure": 2, "compare": 1},
    "hpc": {"train": 10, "choose": 2, "figure": 3, "generate": 1, "guard": 2},
    "hpc-limits": {"train": 10, "choose": 2, "compare": 6, "join": 1, "figure": 1},
    "hpc-sites": {"train": 15, "study": 3, "figure": 2},
    "operation": {"train": 8, "figure": 1},
    "panda": {"train": 45, "figure": 7, "compare": 9, "join": 3},
    "adaptation": {"train": 70, "study": 10, "specialists": 2, "figure": 7},
}

LINES = {
    "deeprm": [
        "metasched train deeprm-released --set task.workload.load=1.1 "
        "--set evaluation.jobsets=1000 --set training.iterations=250 --seed 2 "
        "--run R/deeprm-1.1-2 --continue",
        "metasched train deeprm-fresh --set task.world.rules=released "
        "--set training.since_column=true --set evaluation.jobsets=1000 "
        "--set training.iterations=800 --seed 0 --run R/fresh-0.7-0 --continue",
        "metasched figure deeprm-fig4 --runs 'R/*-*-*' --out R/figures",
        "metasched compare --policies 'fcfs,easy,sjf,tetris,hold,R/*-1.3-*' --at 1.3 "
        "--out R/figures/load-1.3",
        "metasched figure deeprm-windows --runs 'R/*-0.7-*' --jobsets 100 --out R/figures",
    ],
    "ppo": [
        "metasched train deeprm-ppo --set task.world.rules=released "
        "--set task.workload.load=1.845 --set training.iterations=400 --seed 4 "
        "--run R/ppo-1.845-4 --continue",
        "metasched figure optimality-gap --runs 'R/ppo-0.7-*' --jobsets 40 --decode argmax "
        "--out R/figures",
    ],
    "generalist": [
        "metasched train deeprm-generalist --set task.world.rules=released "
        "--set training.iterations=400 --seed 1 --run R/gen-1 --continue",
        "metasched train deeprm-ppo --set task.world.rules=released "
        "--set task.workload.load=1.1 --set training.iterations=400 --seed 2 "
        "--run ppo/ppo-1.1-2 --continue",
        "metasched compare --policies 'R/gen-*,ppo/ppo-1.1-*' --at 1.1 --rules released "
        "--decode tuned --seed 2 --out R/figures/beside-1.1",
    ],
    "objectives": [
        "metasched train deeprm-ppo --set task.world.rules=released --set task.workload.load=1.1 "
        "--set task.objective=fair_slowdown --set training.iterations=120 --seed 0 "
        "--run R/obj-fair_slowdown-0 --continue",
        "metasched compare --policies 'fcfs,easy,sjf,packer,tetris,hold,R/obj-*,R/utilization-*' "
        "--at 1.1 "
        "--decode argmax --out R/figures/price",
    ],
    "hpc": [
        "metasched train hpc-no-worse --set training.iterations=100 --seed 2 --run R/no-worse-2 "
        "--continue",
        "metasched choose 'R/universal-?' --out R/chosen-universal",
        "metasched guard hpc-no-worse --set task.workload.trace=R/jobs.csv --processors 256 "
        "--jobsets 100 --later --out R/guard-hpc-no-worse.json",
        "metasched figure hpc-pareto "
        "--runs 'hpc-universal,hpc-no-worse,R/universal-?,R/no-worse-?' --jobsets 50 "
        "--out R/figures",
    ],
    "hpc-limits": [
        "metasched train hpc-limits --set evaluation.every=120 --set training.iterations=120 "
        "--seed 3 --run R/limits-3 --continue",
        "metasched compare --config hpc-smoke --policies "
        "'saf,hpc-universal,hpc-no-worse,R/limits-?' --set task.workload.jobs=1024 "
        "--set task.workload.load=1 --jobsets 50 --limit utilization=off --limit wait=off "
        "--limit longest_wait=off --out R/figures/told-off",
        "metasched join 'R/figures/told-{share}/comparison.csv' --by share=0,0.1,0.25,0.5,0.75,off "
        "--out R/figures/hpc-told.csv",
    ],
    "hpc-sites": [
        "metasched train hpc-maml --set resources.num_runners=0 --set training.iterations=40 "
        "--seed 1 --run R/maml-1 --continue",
        "metasched study R/joint-0 --scratch 5 --scratch-times 4 --family sites --tasks 16 "
        "--task-seed 1 --seeds 1 --steps 0,1,3,8 --evaluate 40 --rates 0.25,0.5,1,2 "
        "--rate-tasks 6 --out R/adaptation",
        "metasched figure adaptation-differences --rows R/adaptation --out R/figures",
    ],
    "operation": [
        "metasched train deeprm-operation --set training.iterations=100 --seed 3 "
        "--run R/op-3 --continue",
        "metasched figure deeprm-windows --runs 'R/op-*,R/ppo-*' --decode argmax --jobsets 300 "
        "--out R/figures",
    ],
    "panda": [
        "metasched train panda-drift --set training.iterations=50 --seed 4 --run R/drift-4 "
        "--continue",
        "metasched train panda-elastic --set name=panda-central --set training.network=pair_scorer "
        "--set training.iterations=50 --seed 1 --run R/central-1 --continue",
        "metasched figure panda-advisor --runs 'R/advisor-flat-?,R/advisor-tree-?' --out R/figures",
        "metasched compare --policies 'shortest_fit,best_fit,R/elastic-?' --jobsets 100 "
        "--decode argmax --set task.world.observed=16 --out R/figures/filter-16",
        "metasched join 'R/figures/seen-{observed}/comparison.csv' --by observed=4,16 "
        "--out R/figures/panda-filter-trained.csv",
    ],
    "adaptation": [
        "metasched train deeprm-maml --set training.family=objectives "
        "--set training.iterations=400 --seed 4 --run R/objectives-maml-4 --continue",
        "metasched train deeprm-joint --set training.family=mixed --set training.iterations=248 "
        "--seed 0 --run R/mixed-joint-0 --continue",
        "metasched train deeprm-ppo --set task.world.rules=released "
        "--set training.skip_connection=true --set task.world.cluster.num_classes=3 "
        "--set training.iterations=440 --seed 2 --run R/classes-one-2 --continue",
        "metasched train deeprm-conditioned --set training.family=priorities "
        "--set training.iterations=330 --seed 1 --run R/priorities-conditioned-1 --continue",
        "metasched train deeprm-rewards --set training.family=objectives "
        "--set training.iterations=400 --seed 2 --run R/objectives-rewards-2 --continue",
        "metasched study 'R/objectives-*' --family objectives --task-seed 1 --seeds 2 "
        "--rates 0.5,1,2,4,8 --rate-tasks 10 --runners 2 --out R/adaptation",
        "metasched study 'deeprm/deeprm-0.7-*' --family workloads --task-seed 1 "
        "--steps 0,3,10,30 --seeds 1 --runners 2 --out R/adaptation",
        "metasched specialists R/mixed-joint-0 --task-seed 1 --runs R/specialists "
        "--out R/adaptation",
    ],
}


@pytest.mark.parametrize("name", COUNTS)
def test_an_experiment_gives_the_commands_that_made_the_recorded_results(name, capsys):
    lines = shown(capsys, name, "--out", "R")
    kinds = [line.split()[1] for line in lines]
    assert {kind: kinds.count(kind) for kind in kinds} == COUNTS[name]
    assert len(set(lines)) == len(lines)
    for line in LINES[name]:
        assert line in lines


def test_every_experiment_is_tested_and_listed_with_a_line_about_it(capsys):
    assert experiment_names() == sorted(COUNTS)
    assert run(cli.metasched, ["results", "--list"]) == 0
    listed = capsys.readouterr().out
    for name in experiment_names():
        assert re.search(rf"^{name} +\w", listed, re.MULTILINE)


@pytest.mark.parametrize("words", [[], ["all"]])
def test_all_results_are_made_one_after_the_other_and_it_says_how_far_it_is(words, capsys):
    lines = shown(capsys, *words, "--out", "R")
    heads = [line for line in lines if line.startswith("# ")]
    minutes = {name: load_experiment(name).minutes for name in in_order()}
    assert [line.split()[1].rstrip(":") for line in heads] == in_order()
    assert set(in_order()) == set(COUNTS) - {"hpc", "hpc-limits", "hpc-sites", "panda"}
    assert f"1 of {len(minutes)} results" in heads[0]
    assert f"of the {sum(minutes.values())} minutes that are left" in heads[0]
    assert f"{minutes[in_order()[-1]]} of the {minutes[in_order()[-1]]} minutes" in heads[-1]
    given = sum(sum(COUNTS[name].values()) for name in in_order())
    assert len(lines) - len(heads) == given
    assert "metasched compare --policies 'R/generalist/gen-*,R/ppo/ppo-0.7-*'" in "".join(lines)


def test_all_results_take_three_hours():
    assert sum(load_experiment(name).minutes for name in in_order()) <= 180


@pytest.mark.parametrize("name", COUNTS)
def test_training_comes_before_what_uses_the_runs(name, tmp_path):
    kinds = [command.words[0] for command in list_commands(load_experiment(name), tmp_path)]
    assert kinds == sorted(kinds, key=lambda kind: kind != "train")


@pytest.mark.parametrize("name", ["hpc-limits", "panda"])
def test_what_is_joined_are_the_tables_of_the_commands_before(name, tmp_path):
    small = ["--policies", "sjf", "--jobsets", "2", "--window", "8", "--out", str(tmp_path)]
    assert run(cli.metasched, ["compare", *small]) == 0
    of_comparisons = read_table(tmp_path / "comparison.csv", ())[0]
    written = set()
    for command in list_commands(load_experiment(name), tmp_path, seeds=[0]):
        words = command.words
        out = words[words.index("--out") + 1] if "--out" in words else ""
        if words[0] == "join":
            column, _, values = words[words.index("--by") + 1].partition("=")
            joined = {words[1].replace(f"{{{column}}}", value) for value in values.split(",")}
            assert joined <= written
            # As many as commands with such a folder: none is left out.
            begin, _, end = words[1].partition(f"{{{column}}}")
            assert joined == {one for one in written if one.startswith(begin) and one.endswith(end)}
            header = (RECORDED / Path(out).name).read_text().partition(",")[0]
            assert header == column
            assert column not in of_comparisons
        elif words[0] == "compare":
            written.add(f"{out}/comparison.csv")


@pytest.mark.parametrize("name", COUNTS)
def test_the_commands_have_options_that_exist(name, tmp_path):
    for command in list_commands(load_experiment(name), tmp_path):
        kind, *words = command.words
        known = cli.metasched.get_command(None, kind)
        known.make_context(kind, list(words))  # raises UsageError if it cannot be understood


@pytest.mark.parametrize("name", COUNTS)
def test_the_figures_exist_and_the_settings_make_configs(name, tmp_path):
    commands = list_commands(load_experiment(name), tmp_path, seeds=[0])
    figures = {command.words[1] for command in commands if command.words[0] == "figure"}
    assert figures <= set(FIGURES.names())
    for command in commands:
        if command.words[0] == "train":
            pairs = zip(command.words, command.words[1:], strict=False)
            config = load_config(
                command.words[1], [text for flag, text in pairs if flag == "--set"]
            )
            assert config.training.iterations == command.num_iterations


def test_seeds_replace_those_of_all_runs(capsys):
    lines = [line for line in shown(capsys, "adaptation", "--seeds", "7") if " train " in line]
    assert len(lines) == 18
    assert all("--seed 7 " in line for line in lines)
    assert "runs/results/adaptation/one-7" in " ".join(lines)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": [{"command": "figure {nmae}"}]}, "'{nmae}' uses a name in braces"),
        ({"seeds": []}, "seeds"),
        ({"stpes": []}, "stpes"),
        ({"runs": [{**TINY["runs"][0], "name": "tiny"}], "seeds": [0, 1]}, "share the folder"),
    ],
)
def test_an_experiment_that_cannot_be_carried_out_is_refused(change, message, tmp_path):
    file = write(tmp_path / "tiny.yaml", **change)
    with pytest.raises(InputError, match=re.escape(message)):
        list_commands(load_experiment(file), tmp_path)


TINY_RUN = TINY["runs"][0]


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": [{"command": "bogus --x"}]}, "bogus --x' cannot be given: unknown command"),
        ({"steps": [{"command": "compare --policis sjf"}]}, "No such option '--policis'"),
        ({"steps": [{"command": "compare --policies sgf"}]}, "run directory 'sgf'"),
        ({"steps": [{"command": "compare --config nope"}]}, "unknown preset 'nope'"),
        ({"steps": [{"command": "figure --runs {out}/tiny-* fig"}]}, "unknown figure 'fig'"),
        ({"steps": [{"command": "compare 'sjf"}]}, "steps.0.command: input should be a command"),
        ({"steps": [{"command": " "}]}, "steps.0.command: input should be a command"),
        ({"runs": [TINY_RUN, {**TINY_RUN, "name": "b-{seed}", "preset": "nope"}]}, "preset 'nope'"),
        ({"runs": [{**TINY_RUN, "settings": {"training.laernings": 1}}]}, "training.laernings"),
        ({"runs": [{**TINY_RUN, "settings": {"seed": 4}}]}, "seed is not set here, but by seeds"),
        (
            {"runs": [{**TINY_RUN, "settings": {"training.iterations": 4}}]},
            "training.iterations is not set here, but by iterations",
        ),
    ],
)
def test_what_is_mistyped_anywhere_is_found_before_anything_is_trained(
    change, message, dry, tmp_path, inside, capsys
):
    file, out = write(tmp_path / "tiny.yaml", **change), tmp_path / "out"
    args = ["results", file, "--out", str(out), *(["--dry-run"] if dry else [])]
    assert run(cli.metasched, args) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert not inside
    assert not out.exists()


@pytest.mark.parametrize("sign", ",[]*?")
def test_a_folder_whose_name_would_be_read_as_several_runs_is_refused(
    sign, tmp_path, inside, capsys
):
    out = tmp_path / f"a{sign}b"
    assert run(cli.metasched, ["results", write(tmp_path / "tiny.yaml"), "--out", str(out)]) == 2
    assert f"has '{sign}' in its name" in capsys.readouterr().err
    assert not inside


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["deepmr"], "did you mean 'deeprm'"),
        (["deeprm", "--seeds", "0,x"], "--seeds takes whole numbers"),
        (["nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_input_gives_one_line_and_status_2(args, message, capsys):
    assert run(cli.metasched, ["results", *args]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.integration
def test_a_tiny_experiment_is_trained_and_compared_and_goes_on_where_it_was(
    local_ray, tmp_path, capfd, monkeypatch
):
    # In this process; the next tests are about those that the commands have of their own.
    monkeypatch.setattr(running, "_run", lambda command: run(cli.metasched, list(command.words)))
    file, out = write(tmp_path / "tiny.yaml", steps=[]), tmp_path / "out"
    args = ["results", file, "--out", str(out)]
    assert run(cli.metasched, args) == 0
    assert "[1/1] metasched train deeprm-smoke" in capfd.readouterr().out
    made = RunDirectory(out / "tiny-0.7-3").made()
    assert [part.after for part in made] == [0]
    assert made[0].made["version.python"]

    # A comparison, too: the run is done, and is used.
    write(tmp_path / "tiny.yaml")
    assert run(cli.metasched, args) == 0
    assert "[2/2] metasched compare" in capfd.readouterr().out
    compared = (out / "compared" / "comparison.csv").read_text()
    assert "sjf" in compared
    assert "deeprm-smoke" in compared

    # Another load is new: it is trained, and the comparison made again.
    write(tmp_path / "tiny.yaml", runs=[{**TINY["runs"][0], "vary": {"load": [0.7, 1.1]}}])
    assert run(cli.metasched, [*args, "--dry-run"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == f"# {out}/tiny-0.7-3 is done"
    assert [line.split()[1] for line in lines[1:]] == ["train", "compare"]

    # A run of another length is another one, as rates may fall over its length.
    for iterations in (1, 3):
        write(tmp_path / "tiny.yaml", runs=[{**TINY["runs"][0], "iterations": iterations}])
        assert run(cli.metasched, args) == 2
        assert f"training.iterations is 2 there and {iterations} here" in capfd.readouterr().err


FREE_OF_RUNS = [
    {"command": "compare --policies sjf,easy --jobsets 4 --window 20 --out {out}/compared"},
    {"command": "figure deeprm-fig4 --table {out}/compared/comparison.csv --out {out}/figures"},
]


@pytest.fixture
def inside(monkeypatch) -> list[str]:
    """Lets commands run in this process; says which did."""
    given: list[str] = []

    def act(command) -> int:
        given.append(command.words[0])
        return run(cli.metasched, list(command.words))

    monkeypatch.setattr(running, "_run", act)
    return given


def digests(out) -> dict[str, str]:
    record = json.loads((out / "results.json").read_text())
    return {
        name: text for one in record["commands"].values() for name, text in one["files"].items()
    }


def test_who_makes_results_with_files_that_no_commit_holds_hears_it_first(
    tmp_path, inside, capsys, monkeypatch
):
    changed = {"git.commit": "0123456789", "git.dirty": "yes"}
    monkeypatch.setattr(recording, "provenance", lambda: changed)
    file, out = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS), tmp_path / "out"
    assert run(cli.metasched, ["results", file, "--out", str(out)]) == 2
    assert "files of metasched differ from the commit 0123456" in capsys.readouterr().err
    assert not inside
    assert not out.exists()
    assert run(cli.metasched, ["results", file, "--out", str(out), "--dry-run"]) == 0
    assert run(cli.metasched, ["results", file, "--out", str(out), "--force"]) == 0
    assert inside == ["compare", "figure"]
    assert json.loads((out / "results.json").read_text())["made"] == changed
    # What they were made with is not in the commit, so that they are not those of it.
    monkeypatch.setattr(recording, "provenance", lambda: {**changed, "git.dirty": "no"})
    inside.clear()
    assert run(cli.metasched, ["results", file, "--out", str(out)]) == 0
    assert inside == ["compare", "figure"]


def test_results_are_the_same_digits_twice_with_their_commit_and_commands(tmp_path, inside):
    file = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS)
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        assert run(cli.metasched, ["results", file, "--out", str(out)]) == 0
    first, second = map(digests, outs)
    tables = [name for name in first if name.endswith(".csv")]
    assert tables == ["compared/comparison.csv"]
    assert first == second
    assert "figures/deeprm-fig4.png" in first
    assert json.loads((outs[0] / "results.json").read_text())["made"]["version.python"]
    page = (outs[0] / "results.md").read_text()
    assert (
        f"    metasched compare --policies sjf,easy --jobsets 4 --window 20 --out {outs[0]}" in page
    )
    rows = read_table(outs[0] / "compared" / "comparison.csv", ("policy", "slowdown"))
    for row in rows:
        shown = float(row["slowdown"]), float(row["utilization"]), float(row["longest_wait"])
        line = next(one for one in page.splitlines() if one.startswith(f"| {row['policy']} |"))
        mean = line.split("|")[2].replace("*", "")
        assert mean.startswith(f" {shown[0]:.2f} [")
        assert f"| {shown[1]:.1%} |" in line
        assert f"| {shown[2]:.0f} |" in line


def test_what_is_done_is_left_and_what_was_changed_is_made_again(tmp_path, inside, monkeypatch):
    file, out = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS), tmp_path / "out"

    def again() -> list[str]:
        inside.clear()
        assert run(cli.metasched, ["results", file, "--out", str(out)]) == 0
        return list(inside)

    assert again() == ["compare", "figure"]
    assert again() == []
    (out / "figures" / "deeprm-fig4.png").unlink()
    assert again() == ["figure"]
    table = out / "compared" / "comparison.csv"
    table.write_text(table.read_text().replace("sjf", "sjg"))
    assert again() == ["compare"]  # the same table again, so that the figure is that of its file
    monkeypatch.setattr(recording, "provenance", lambda: {"git.commit": "another"})
    assert again() == ["compare", "figure"]
    for broken in ("[]", '{"commands": []}', "{"):
        (out / "results.json").write_text(broken)
        assert again() == ["compare", "figure"]


def test_what_is_tracked_is_no_result(tmp_path, inside, monkeypatch):
    """Every command adds to the store beside the runs, and would undo those before it."""
    act = running._run

    def tracking(command) -> int:
        for name in ("mlflow.db", "mlflow.db.lock", "mlartifacts/a/comparison.csv"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(command))
        return act(command)

    monkeypatch.setattr(running, "_run", tracking)
    compare = "compare --policies sjf,{out}/tiny-* --jobsets 3 --out {out}/"
    steps = [{"command": f"{compare}{name}"} for name in ("one", "two")]
    args = ["results", made_runs(tmp_path, steps=steps), "--out", str(tmp_path)]
    assert run(cli.metasched, args) == 0
    assert run(cli.metasched, args) == 0
    assert inside == ["compare", "compare"]
    assert all(name.startswith(("one/", "two/")) for name in digests(tmp_path))


def test_what_a_command_finds_made_is_its_own(tmp_path, inside, monkeypatch):
    """Studies leave rows as they are that they have measured before."""
    file, out = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS), tmp_path / "out"
    assert run(cli.metasched, ["results", file, "--out", str(out)]) == 0
    before = digests(out)
    (out / "results.json").unlink()
    monkeypatch.setattr(running, "_run", lambda command: 0)
    assert run(cli.metasched, ["results", file, "--out", str(out)]) == 0
    assert digests(out) == before


def test_the_page_says_at_which_commits_policies_were_trained(
    tmp_path, inside, monkeypatch, capsys
):
    args = ["results", made_runs(tmp_path), "--out", str(tmp_path)]
    trained = RunDirectory(tmp_path / "tiny-3")

    def page() -> str:
        assert run(cli.metasched, args) == 0
        return (tmp_path / "results.md").read_text()

    assert "| tiny-3 | unknown |" in page()
    assert (
        "Of 1 runs, 1 are not known to be trained at this commit alone" in capsys.readouterr().out
    )
    monkeypatch.setattr(recording, "provenance", lambda: {"git.commit": "1234567890"})
    trained.write_made(0, {"git.commit": "1234567890", "git.dirty": "no"})
    assert "| tiny-3 | 1234567 |" in page()
    assert "not known" not in capsys.readouterr().out
    trained.write_made(4, {"git.commit": "abcdefabcd", "git.dirty": "yes"})
    assert "| tiny-3 | 1234567, abcdefa with changed files |" in page()
    assert "1 are not known to be trained at this commit alone" in capsys.readouterr().out


def made_runs(out, *overrides, steps=None) -> str:
    """An experiment of one run, which is there already as `overrides` have it."""
    runs = [
        {
            "name": "tiny-{seed}",
            "preset": "deeprm",
            "iterations": 6,
            "settings": dict(text.split("=", 1) for text in SMALL_TASK),
        }
    ]
    folder = make_run(out / "tiny-3", "training.iterations=6", *overrides, seed=3)
    (folder / "checkpoints" / "iteration_000006").mkdir(parents=True)
    alone = [{"command": "compare --policies sjf,{out}/tiny-* --jobsets 3 --out {out}/compared"}]
    return write(out / "tiny.yaml", runs=runs, steps=steps or alone)


def test_a_comparison_is_made_again_when_a_policy_has_changed(tmp_path, inside):
    args = ["results", made_runs(tmp_path), "--out", str(tmp_path)]
    assert run(cli.metasched, args) == 0
    assert run(cli.metasched, args) == 0
    assert inside == ["compare"]
    weights = tmp_path / "tiny-3" / "policy" / "weights.pt"
    torch.save({name: 2 * value for name, value in torch.load(weights).items()}, weights)
    assert run(cli.metasched, args) == 0
    assert inside == ["compare", "compare"]


def test_a_run_that_is_not_that_of_the_file_is_refused(tmp_path, inside, capsys):
    file = made_runs(tmp_path, "training.lr=0.5")
    assert run(cli.metasched, ["results", file, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "tiny-3 is not the run that the experiment names: training.lr is 0.5 there" in error
    assert not inside
    (tmp_path / "tiny-3" / "config.yaml").unlink()
    assert run(cli.metasched, ["results", file, "--out", str(tmp_path)]) == 2
    assert "tiny-3 has a policy and no config.yaml" in capsys.readouterr().err


def test_a_comparison_takes_no_run_that_the_file_does_not_name(tmp_path, inside, capsys):
    file = made_runs(tmp_path)
    make_run(tmp_path / "tiny-7", seed=7)
    assert run(cli.metasched, ["results", file, "--out", str(tmp_path)]) == 2
    assert "tiny-7, which the experiment does not name" in capsys.readouterr().err
    assert not inside


def test_a_command_that_fails_ends_it_with_its_status(tmp_path, capfd):
    steps = [{"command": "compare --policies nobody"}, {"command": "figure --list"}]
    file = write(tmp_path / "tiny.yaml", runs=[], steps=steps)
    assert run(cli.metasched, ["results", file, "--out", str(tmp_path)]) == 2
    shown = capfd.readouterr()
    assert "nobody" in shown.err
    assert "Give the same command again" not in shown.err  # it would fail again
    assert "figure" not in shown.out


@pytest.mark.integration
@pytest.mark.slow
def test_a_signal_lets_the_training_write_its_checkpoint(tmp_path):
    runs = [{**TINY["runs"][0], "iterations": 100_000}]
    file, folder = write(tmp_path / "tiny.yaml", runs=runs), tmp_path / "tiny-0.7-3"
    command = [sys.executable, "-m", "tune_jobs.cli", "results", file, "--out", str(tmp_path)]
    command += ["--force"]  # the process has no part in what is patched here
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with started(command, **streams, text=True) as process:
        wait_for((folder / "checkpoints").is_dir, "the beginning of training", process=process)
        os.kill(process.pid, signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143, said
    assert "Give the same command again" in said
    iterations = [row["iteration"] for row in History(folder / "metrics.csv").rows()]
    newest = max(path.name for path in (folder / "checkpoints").glob("iteration_*"))
    assert newest == f"iteration_{int(iterations[-1]):06d}"
