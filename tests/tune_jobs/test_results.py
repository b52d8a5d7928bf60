"""``metasched results``: the commands that it gives, and how it goes on after a stop."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import ray
import torch
import yaml

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.config.schema import prepare
from tests.conftest import REPOSITORY
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tests.waiting import wait_for
from tune_jobs import cli
from tune_jobs.experiments import record, running
from tune_jobs.experiments.checking import check_trained
from tune_jobs.experiments.definition import load_experiment
from tune_jobs.experiments.listing import list_calls
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.runs.history import History
from tune_jobs.tables.frames import read_table
from tune_jobs.terminal.running import run

RECORDED = REPOSITORY / "tune_jobs" / "figures" / "recorded"


def compare(policies, out, **options):
    return {"call": "compare", "options": {"policies": policies, **options, "out": out}}


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
    "steps": [compare("sjf,{out}/tiny-*", "{out}/compared", jobsets=5)],
}


def write(path, **changes):
    path.write_text(yaml.safe_dump({**TINY, **changes}, sort_keys=False))
    return str(path)


@pytest.fixture(autouse=True)
def committed(monkeypatch):
    """All that makes results is in the commit, whatever stands in the working tree."""
    made = record.provenance()
    monkeypatch.setattr(record, "provenance", lambda: {**made, "git.dirty": "no"})


def make(file, out, *more) -> int:
    return run(cli.metasched, ["results", file, "--out", str(out), *more])


TINY_RUN = TINY["runs"][0]


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": [compare("{nmae}", "{out}/x")]}, "'{nmae}' uses a name in braces"),
        ({"seeds": []}, "seeds"),
        ({"stpes": []}, "stpes"),
        ({"runs": [{**TINY_RUN, "name": "tiny"}], "seeds": [0, 1]}, "share the folder"),
        ({"steps": [{"call": "bogus"}]}, "'bogus' cannot be called: unknown command 'bogus'"),
        ({"steps": [compare("sjf", "{out}/x", jobstes=3)]}, "did you mean 'jobsets'"),
        ({"steps": [compare("sjf", "{out}/x", jobsets=0)]}, "jobsets: input should be greater"),
        (
            {"steps": [compare("sjf", "{out}/x", jobsets=2.5)]},
            "jobsets: input should be a valid integer",
        ),
        ({"steps": [compare("sjf", "{out}/x", at=[0.7, 1.1])]}, "at: it takes one value"),
        ({"steps": [compare("sjf", "{out}/x", decode="best")]}, "decode: input should be 'sample'"),
        ({"steps": [{"call": "generate"}]}, "path is missing"),
        ({"steps": [compare("sgf", "{out}/x")]}, "run directory 'sgf'"),
        ({"steps": [compare("sjf", "{out}/x", config="nope")]}, "unknown preset 'nope'"),
        ({"steps": [{"call": "figure", "options": {"name": "fig"}}]}, "unknown figure 'fig'"),
        (
            {"steps": [{"call": "figure", "options": {"name": "learning-curves", "jobsets": 4}}]},
            "the figure learning-curves does not use --jobsets; it uses --runs",
        ),
        ({"steps": [{"command": "compare"}]}, "steps.0.call: field required"),
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
    assert make(file, out, *(["--dry-run"] if dry else [])) == 2
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
    assert make(write(tmp_path / "tiny.yaml"), out) == 2
    assert f"has '{sign}' in its name" in capsys.readouterr().err
    assert not inside


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["deepmr"], "did you mean 'deeprm'"),
        (["deeprm", "--seeds", "0,x"], "'--seeds': values are whole numbers like 0,1,3"),
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
    # In this process; test_calls.py is about those that calls have of their own.
    monkeypatch.setattr(running, "carry_out_all", carried_out_here([]))
    file, out = write(tmp_path / "tiny.yaml", steps=[]), tmp_path / "out"
    assert make(file, out) == 0
    assert "[1/1] metasched train deeprm-smoke" in capfd.readouterr().out
    made = RunDirectory(out / "tiny-0.7-3").made()
    assert [part.after for part in made] == [0]
    assert made[0].made["version.python"]

    # A comparison, too: the run is done, and is used.
    write(tmp_path / "tiny.yaml")
    assert make(file, out) == 0
    assert "[2/2] metasched compare" in capfd.readouterr().out
    compared = (out / "compared" / "comparison.csv").read_text()
    assert "sjf" in compared
    assert "deeprm-smoke" in compared

    # Another load is new: it is trained, and the comparison made again.
    write(tmp_path / "tiny.yaml", runs=[{**TINY["runs"][0], "vary": {"load": [0.7, 1.1]}}])
    assert make(file, out, "--dry-run") == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == f"# {out}/tiny-0.7-3 is done"
    assert [line.split()[1] for line in lines[1:]] == ["train", "compare"]

    # A run of another length is another one, as rates may fall over its length.
    for iterations in (1, 3):
        write(tmp_path / "tiny.yaml", runs=[{**TINY["runs"][0], "iterations": iterations}])
        assert make(file, out) == 2
        assert f"training.iterations is 2 there and {iterations} here" in capfd.readouterr().err


FREE_OF_RUNS = [
    compare("sjf,easy", "{out}/compared", jobsets=4, window=20),
    {
        "call": "figure",
        "options": {
            "name": "deeprm-fig4",
            "rows": "{out}/compared/comparison.csv",
            "out": "{out}/figures",
        },
    },
]


@pytest.fixture
def inside(monkeypatch) -> list[str]:
    """Lets calls be made in this process; says which were."""
    names: list[str] = []
    monkeypatch.setattr(running, "carry_out_all", carried_out_here(names))
    return names


def carried_out_here(names):
    def carry_out(calls, at_once=1) -> int:
        for place, call in calls.items():
            print(f"{place}{call}")
            names.append(call.name)
            if status := call.carry_out():
                return status
        return 0

    return carry_out


def digests(out) -> dict[str, str]:
    record = json.loads((out / "results.json").read_text())
    return {
        name: text for one in record["commands"].values() for name, text in one["files"].items()
    }


def test_who_makes_results_with_files_that_no_commit_holds_hears_it_first(
    tmp_path, inside, capsys, monkeypatch
):
    changed = {"git.commit": "0123456789", "git.dirty": "yes"}
    monkeypatch.setattr(record, "provenance", lambda: changed)
    file, out = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS), tmp_path / "out"
    assert make(file, out) == 2
    assert "files of metasched differ from the commit 0123456" in capsys.readouterr().err
    assert not inside
    assert not out.exists()
    assert make(file, out, "--dry-run") == 0
    assert make(file, out, "--force") == 0
    assert inside == ["compare", "figure"]
    assert json.loads((out / "results.json").read_text())["made"] == changed
    # What they were made with is not in the commit, so that they are not those of it.
    monkeypatch.setattr(record, "provenance", lambda: {**changed, "git.dirty": "no"})
    inside.clear()
    assert make(file, out) == 0
    assert inside == ["compare", "figure"]


def test_results_are_the_same_digits_twice_with_their_commit_and_commands(tmp_path, inside):
    file = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS)
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        assert make(file, out) == 0
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
        assert f"| {shown[2]:.1f} |" in line


def test_what_is_done_is_left_and_what_was_changed_is_made_again(tmp_path, inside, monkeypatch):
    file, out = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS), tmp_path / "out"

    def again() -> list[str]:
        inside.clear()
        assert make(file, out) == 0
        return list(inside)

    assert again() == ["compare", "figure"]
    assert again() == []
    (out / "figures" / "deeprm-fig4.png").unlink()
    assert again() == ["figure"]
    table = out / "compared" / "comparison.csv"
    table.write_text(table.read_text().replace("sjf", "sjg"))
    assert again() == ["compare"]  # the same table again, so that the figure is that of its file
    monkeypatch.setattr(record, "provenance", lambda: {"git.commit": "another"})
    assert again() == ["compare", "figure"]
    for broken in ("[]", '{"commands": []}', "{"):
        (out / "results.json").write_text(broken)
        assert again() == ["compare", "figure"]


def test_what_is_tracked_is_no_result(tmp_path, inside, monkeypatch):
    """Every command adds to the store beside the runs, and would undo those before it."""
    act = running.carry_out_all

    def tracking(calls, at_once=1) -> int:
        for name in ("mlflow.db", "mlflow.db.lock", "mlartifacts/a/comparison.csv"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(calls))
        return act(calls)

    monkeypatch.setattr(running, "carry_out_all", tracking)
    steps = [compare("sjf,{out}/tiny-*", out, jobsets=3) for out in ("{out}", "{out}/two")]
    file = made_runs(tmp_path, steps=steps)
    assert [make(file, tmp_path) for _ in range(2)] == [0, 0]
    assert inside == ["compare", "compare"]
    assert all(name.startswith(("comparison.", "two/")) for name in digests(tmp_path))


def test_what_a_command_finds_made_is_its_own(tmp_path, inside, monkeypatch):
    """Studies leave rows as they are that they have measured before."""
    file, out = write(tmp_path / "tiny.yaml", runs=[], steps=FREE_OF_RUNS), tmp_path / "out"
    assert make(file, out) == 0
    before = digests(out)
    (out / "results.json").unlink()
    monkeypatch.setattr(running, "carry_out_all", lambda calls, at_once=1: 0)
    assert make(file, out) == 0
    assert digests(out) == before


def test_the_page_says_at_which_commits_policies_were_trained(
    tmp_path, inside, monkeypatch, capsys
):
    file = made_runs(tmp_path)
    trained = RunDirectory(tmp_path / "tiny-3")

    def page() -> str:
        assert make(file, tmp_path) == 0
        return (tmp_path / "results.md").read_text()

    assert "| tiny-3 | unknown |" in page()
    assert (
        "Of 1 runs, 1 are not known to be trained at this commit alone" in capsys.readouterr().out
    )
    monkeypatch.setattr(record, "provenance", lambda: {"git.commit": "1234567890"})
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
    alone = [compare("sjf,{out}/tiny-*", "{out}/compared", jobsets=3)]
    return write(out / "tiny.yaml", runs=runs, steps=steps or alone)


def test_a_comparison_is_made_again_when_a_policy_has_changed(tmp_path, inside):
    file = made_runs(tmp_path)
    assert [make(file, tmp_path) for _ in range(2)] == [0, 0]
    assert inside == ["compare"]
    weights = tmp_path / "tiny-3" / "policy" / "weights.pt"
    torch.save({name: 2 * value for name, value in torch.load(weights).items()}, weights)
    assert make(file, tmp_path) == 0
    assert inside == ["compare", "compare"]


def test_a_run_that_is_not_that_of_the_file_is_refused(tmp_path, inside, capsys):
    file = made_runs(tmp_path, "training.lr=0.5")
    assert make(file, tmp_path) == 2
    error = capsys.readouterr().err
    assert "tiny-3 is not the run that the experiment names: training.lr is 0.5 there" in error
    assert not inside
    (tmp_path / "tiny-3" / "config.yaml").unlink()
    assert make(file, tmp_path) == 2
    assert "tiny-3 has a policy and no config.yaml" in capsys.readouterr().err


def test_who_names_the_folder_above_is_told(tmp_path, inside, capsys):
    file = made_runs(tmp_path / "tiny")
    assert make(file, tmp_path) == 2
    assert f"give --out {tmp_path / 'tiny'}" in capsys.readouterr().err
    assert not inside


def test_a_run_of_meta_learning_is_that_of_the_file_although_its_family_completed_it(tmp_path):
    """What a family's tasks have in common stands in the config of the run, and in no command."""
    settings = {"training.family": "objectives"}
    runs = [{"name": "meta-{seed}", "preset": "deeprm-maml", "iterations": 6, "settings": settings}]
    file = write(tmp_path / "meta.yaml", runs=runs, steps=[])
    (call,) = list_calls(load_experiment(file), tmp_path)
    given = [*call.texts("set"), "seed=3"]
    config = prepare(load_config("deeprm-maml", given))
    assert config.task != load_config("deeprm-maml", given).task
    (tmp_path / "meta-3").mkdir()
    write_config(config, tmp_path / "meta-3" / "config.yaml")
    check_trained(call)
    other = load_config("deeprm-maml", [*given, "seed=4"])
    write_config(prepare(other), tmp_path / "meta-3" / "config.yaml")
    with pytest.raises(InputError, match="seed is 4 there and 3 here"):
        check_trained(call)


def test_a_comparison_takes_no_run_that_the_file_does_not_name(tmp_path, inside, capsys):
    file = made_runs(tmp_path)
    make_run(tmp_path / "tiny-7", seed=7)
    assert make(file, tmp_path) == 2
    assert "tiny-7, which the experiment does not name" in capsys.readouterr().err
    assert not inside


def test_a_command_that_fails_ends_it_with_its_status(tmp_path, inside, capsys):
    absent = {"name": "deeprm-fig4", "rows": "{out}/nobody.csv", "out": "{out}"}
    file = write(
        tmp_path / "tiny.yaml",
        runs=[],
        steps=[{"call": "figure", "options": absent}, compare("sjf", "{out}")],
    )
    assert make(file, tmp_path) == 2
    error = capsys.readouterr().err
    assert "nobody.csv" in error
    assert "Give the same command again" not in error  # it would fail again
    assert inside == ["figure"]


@pytest.mark.integration
@pytest.mark.slow
def test_a_signal_lets_all_trainings_write_their_checkpoints(
    local_ray, tmp_path, monkeypatch, capfd
):
    alone = {**TINY_RUN["settings"], "resources.num_runners": 0}
    runs = [{**TINY_RUN, "iterations": 100_000, "settings": alone}]
    file = write(tmp_path / "tiny.yaml", runs=runs, seeds=[3, 4, 5])
    begun, waiting = [tmp_path / f"tiny-0.7-{seed}" for seed in (3, 4)], tmp_path / "tiny-0.7-5"
    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)  # they share it

    def stop():
        for folder in begun:
            wait_for((folder / "checkpoints").is_dir, "the beginning of training")
        os.kill(os.getpid(), signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(stop)
        status = make(file, tmp_path, "--at-once", "2")
        stopping.result()
    said = capfd.readouterr()
    assert status == 143, said
    assert "Give the same command again" in said.err
    for folder in begun:
        iterations = [row["iteration"] for row in History(folder / "metrics.csv").rows()]
        newest = max(path.name for path in (folder / "checkpoints").glob("iteration_*"))
        assert newest == f"iteration_{int(iterations[-1]):06d}"
    assert not waiting.exists()
