"""Trained policies that come with the package: their files, and commands that take their names."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cluster_env import worlds
from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_spec, shipped_policies
from metasched import compare
from rllib_configs.loading import load_config, preset_names
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import load_policy, read_weights, write_policy
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs import cli
from tune_jobs.comparing.guarding import load_decided
from tune_jobs.comparing.table import format_rows
from tune_jobs.comparing.trained_runs import (
    check_fits,
    find_runs,
    group_by_experiment,
    load_runs,
    without_hold,
)
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.tables.frames import read_table

ORDER, HOLD, HOLD_LIMITS, LIMITS = "hpc-order", "hpc-hold", "hpc-hold-limits", "hpc-limits"
OLD_NAMES = {"hpc-universal": HOLD, "hpc-no-worse": HOLD_LIMITS}
OPERATION = "deeprm-operation"
SMALL = ("--set", "task.workload.jobs=120")
Shown = pytest.CaptureFixture[str]


def metasched(*args: object) -> int:
    return cli.run(cli.metasched, list(map(str, args)))


@pytest.mark.parametrize("name", shipped_policies())
def test_each_is_small_whole_and_says_what_it_costs_and_where_it_fails(name: str) -> None:
    folder = shipped_policies()[name]
    weights, config = read_weights(name)
    assert config.name == name in preset_names()
    network = network_of(config)
    assert {key: value.shape for key, value in weights.items()} == dict(
        network.shapes(config, config.task.world)
    )
    assert sum(value.size for value in weights.values()) < 300
    # What all waiting jobs share is nothing to a policy that only orders them.
    unused = {"network.state"} if getattr(config.training, "mode", "") == "easy" else set()
    assert all(np.any(value) != (key in unused) for key, value in weights.items())
    card = (folder / "README.md").read_text()
    for head in (
        "## Training",
        "## Results and side metrics",
        "## Where it fails",
        f"metasched train {name}",
    ):
        assert head in card
    assert f"--seed {config.seed}" in card


def test_text_gives_the_same_weights_again(tmp_path: Path) -> None:
    config = load_config(HOLD, ["training.bilinear=true"])
    shapes = network_of(config).shapes(config, config.task.world)
    rng = np.random.default_rng(0)
    weights = {
        name: (rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)).astype(np.float32)
        for name, shape in shapes.items()
    }
    write_policy(weights, config, tmp_path, as_text=True)
    found, again = read_weights(tmp_path)
    assert again == config
    assert all(np.array_equal(found[name], value) for name, value in weights.items())


def _nothing(data: dict) -> dict:
    return {}


def _nan(data: dict) -> dict:
    return {**data, "network.job": [float("nan"), *data["network.job"][1:]]}


def _huge(data: dict) -> dict:
    return {**data, "network.job": [1e60, *data["network.job"][1:]]}


def _short(data: dict) -> dict:
    return {**data, "network.job": data["network.job"][1:]}


def _words(data: dict) -> dict:
    return {**data, "network.job": ["one", *data["network.job"][1:]]}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_nothing, "it has none"),
        (_nan, "NaN or infinite"),
        (_huge, "NaN or infinite"),
        (_short, r"have the shape \(9\)"),
        (_words, "is broken"),
    ],
)
def test_damaged_text_is_one_sentence(
    damage: Callable[[dict], dict], words: str, tmp_path: Path
) -> None:
    weights, config = read_weights(HOLD)
    write_policy(weights, config, tmp_path, as_text=True)
    file = tmp_path / "weights.json"
    file.write_text(json.dumps(damage(json.loads(file.read_text()))))
    with pytest.raises(InputError, match=words) as error:
        load_policy(tmp_path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_it_stands_apart_from_runs_of_its_preset(tmp_path: Path) -> None:
    """It was chosen among seeds, so it is none of a sample of them."""
    weights, config = read_weights(HOLD)
    other = config.model_copy(update={"seed": config.seed + 1})
    write_policy(weights, other, tmp_path / "mine" / "policy", as_text=True)
    runs = load_runs(find_runs([HOLD, str(tmp_path / "mine")]), "sample")
    assert [(key, len(group)) for key, group in group_by_experiment(runs)] == [
        (HOLD, 1),
        ("mine", 1),
    ]


def test_a_run_of_its_preset_is_called_by_its_folder(tmp_path: Path) -> None:
    weights, config = read_weights(HOLD)
    for name in ("mine", HOLD):
        write_policy(weights, config, tmp_path / name / "policy", as_text=True)
        (run,) = load_runs(find_runs([str(tmp_path / name)]), "sample")
        ((shown, _),) = group_by_experiment([run])
        assert shown == ("mine" if name == "mine" else f"{tmp_path.name}/{HOLD}")


@pytest.fixture
def unwarned(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged, where nobody has used an old name yet."""
    worlds._warn_once.cache_clear()
    return caplog


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_is_the_present_one_with_one_warning(
    old: str, unwarned: pytest.LogCaptureFixture
) -> None:
    new = OLD_NAMES[old]
    assert old not in {*shipped_policies(), *preset_names()}
    assert find_runs([old, new]) == find_runs([new])
    assert read_weights(old)[1] == read_weights(new)[1]
    assert load_policy(old)[0].name == new
    choose_adviser(old)  # of shadow and steer
    assert load_config(old) == load_config(new)
    start = [f"training.start={name}" for name in (old, new)]
    configs = [load_config(new, [one]) for one in start]
    assert configs[0] == configs[1]
    assert str(configs[0].training.start) == new
    (warning,) = unwarned.messages
    assert warning == (
        f"{old} is now called {new}: it holds jobs back, which does harm on most real logs; "
        "hpc-order never holds"
    )


def test_a_present_name_is_used_without_a_warning(unwarned: pytest.LogCaptureFixture) -> None:
    for name in shipped_policies():
        load_policy(name)
        load_config(name)
    assert not unwarned.messages


def test_a_command_with_an_old_name_says_the_present_one_on_standard_error(
    tmp_path: Path, capsys: Shown, unwarned: pytest.LogCaptureFixture
) -> None:
    log = write_site_log(tmp_path / "jobs.csv", 40)
    machine = ("--processors", 16, "--gpus", 4)
    lines: dict[str, tuple[object, ...]] = {
        "replay": ("replay", log, "--policy", "hpc-universal", *machine, "--json"),
        "train": ("train", "hpc-no-worse", "--print-config"),
        "choose": ("choose", "hpc-universal", "--jobsets", 2, "--json"),
        "compare": ("compare", "--policies", "hpc-no-worse", *SMALL, "--jobsets", 2, "--json"),
    }
    for name, line in lines.items():
        worlds._warn_once.cache_clear()
        assert metasched(*line) == 0
        shown = capsys.readouterr()
        assert shown.err.count("is now called") == 1, name
        assert shown.err.startswith("metasched: hpc-")
        assert "hpc-hold" in shown.out, name
        assert "is now called" not in shown.out


def test_a_decision_with_an_old_name_is_read(tmp_path: Path) -> None:
    file = tmp_path / "decision.json"
    world = {"kind": "hpc", "processors": 64}
    data = {"use": "policy", "run": "hpc-universal", "decode": "argmax", "world": world}
    file.write_text(json.dumps({**data, "objective": "bounded_slowdown", "limits": {}}))
    assert load_decided(file).name == HOLD


def test_the_order_alone_is_that_of_the_weights_that_may_hold() -> None:
    """It is today what `hpc-hold-limits` is without its hold, to the last start time."""
    task = load_config(ORDER, ["task.workload.jobs=200", "task.workload.load=1"]).task.build()
    jobsets = task.jobsets(Split.HELD_OUT, range(3))
    order, hold = load_runs(find_runs([ORDER, HOLD_LIMITS]), "argmax")
    unheld = without_hold(hold)
    assert without_hold(order) is None
    assert unheld is not None
    starts = [
        evaluate(run.policy, jobsets, task.world).start.tolist() for run in (order, unheld, hold)
    ]
    assert starts[0] == starts[1] != starts[2]


def test_messages_call_it_by_its_name() -> None:
    (run,) = load_runs(find_runs([LIMITS]), "argmax")
    with pytest.raises(InputError, match=f"^{LIMITS} was trained for another world"):
        check_fits(run, get_spec("deeprm").world())


def test_compare_takes_its_name_and_shows_the_price(capsys: Shown) -> None:
    options = ("--jobsets", 6, "--decode", "argmax", "--json")
    asked = f"saf,{HOLD},{HOLD_LIMITS}"
    assert metasched("compare", "--policies", asked, *SMALL, *options) == 0
    rows = json.loads(capsys.readouterr().out)
    names = [HOLD, f"{HOLD} (no hold)", HOLD_LIMITS, f"{HOLD_LIMITS} (no hold)"]
    assert [row["policy"] for row in rows] == ["saf", *names]
    rule, learned, unheld, no_worse, _ = rows
    assert (learned["key"], learned["learned"]) == (HOLD, True)
    assert unheld["learned"]
    assert unheld["utilization_to_end"] > learned["utilization_to_end"]
    assert unheld["wait"] < learned["wait"]
    assert (learned["trained_on"], learned["trained_at"]) == ("any-site", None)
    assert learned["bounded_slowdown"] < rule["bounded_slowdown"]
    assert learned["utilization_to_end"] < rule["utilization_to_end"]  # the price of holding
    assert learned["wait"] > rule["wait"]
    assert no_worse["wait"] < 1.1 * rule["wait"]
    assert no_worse["utilization_to_end"] > 0.97 * rule["utilization_to_end"]


def test_the_policy_that_is_told_limits_follows_them(capsys: Shown) -> None:
    """With room on waits and utilization it holds more, and the mean slowdown is lower for it."""
    found, told = [], []
    for limit in ("0", "0.5", "2"):  # from 1 on there is none
        limits = [f"--limit={name}={limit}" for name in ("utilization", "wait", "longest_wait")]
        line = ["compare", "--config", "hpc-smoke", "--policies", f"saf,{LIMITS}", "--json"]
        size = ["--set", "task.workload.jobs=400", "--set", "task.workload.load=1"]
        assert metasched(*line, *size, "--jobsets", 6, *limits) == 0
        rows = json.loads(capsys.readouterr().out)
        learned = next(row for row in rows if row["learned"])
        found.append([learned[name] for name in ("bounded_slowdown", "utilization", "wait")])
        told.append((rows[0]["told"], learned["told"]))
    strict, middle, free = found
    assert strict[0] > middle[0] > free[0]
    assert strict[1] > middle[1] > free[1]
    assert strict[2] < middle[2] < free[2]
    assert told == [
        ("", f"utilization {worse}, wait {worse}, longest_wait {worse}")
        for worse in ("0%", "50%", "off")
    ]
    assert f"{LIMITS} was conditioned on: {told[2][1]}." in format_rows(rows)


def test_a_loaded_policy_is_told_the_same_limits() -> None:
    limits, changes = {"utilization": 2.0, "wait": 1.0}, {"task.workload.jobs": 60}
    found = []
    for policy in (LIMITS, load_policy(LIMITS)[0]):
        row, *_ = compare([policy], LIMITS, changes=changes, num_jobsets=2, limits=limits)
        found.append((row["bounded_slowdown"], row["utilization_to_end"]))
    assert found[0] == found[1]


def test_the_policy_for_operation_is_better_than_tetris_at_no_longer_waits(capsys: Shown) -> None:
    crowded = ("--loads", 0.8, "--window", 400, "--warmup", 50, "--rules", "released")
    names = f"tetris:0.001,{OPERATION}"
    assert metasched("compare", "--policies", names, *crowded, "--jobsets", 12, "--json") == 0
    rule, learned = json.loads(capsys.readouterr().out)
    assert (learned["key"], learned["trained_at"]) == (OPERATION, 0.8)
    assert learned["slowdown"] < 0.95 * rule["slowdown"]
    assert learned["wait"] < 1.05 * rule["wait"]
    assert learned["utilization"] > 0.98 * rule["utilization"]


def test_replay_takes_its_name_on_a_machine_with_gpus(tmp_path: Path, capsys: Shown) -> None:
    log = write_site_log(tmp_path / "jobs.csv", 120)
    machine = ("--processors", 16, "--gpus", 4)
    assert metasched("replay", log, "--policy", f"saf,{HOLD}", *machine, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    names = [row["policy"] for row in found["replay"]]
    assert sorted(names) == ["hpc-hold", "hpc-hold (no hold)", "saf"]


def test_replay_shows_no_row_without_hold_of_what_never_holds(
    tmp_path: Path, capsys: Shown
) -> None:
    log = write_site_log(tmp_path / "jobs.csv", 60)
    machine = ("--processors", 16, "--gpus", 4)
    assert metasched("replay", log, "--policy", f"saf,{ORDER}", *machine, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["policy"] for row in found["replay"]} == {"saf", ORDER}


def test_the_guard_refuses_it_where_it_is_too_dear_and_keeps_the_decision(
    tmp_path: Path, capsys: Shown
) -> None:
    out = tmp_path / "decision.json"
    options = (*SMALL, "--jobsets", 4, "--out", out, "--json")
    assert metasched("guard", HOLD, *options, "--limit", "utilization=0.01") == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["learned_is_used"]
    dear = {one["policy"]: one["too_dear"] for one in found["candidates"]}
    assert "utilization" in dear[HOLD]
    assert load_decided(out).name == found["chosen"]
    out.write_text(json.dumps({**json.loads(out.read_text()), "use": "policy"}))
    assert load_decided(out).name == HOLD


def test_figures_take_its_name(tmp_path: Path) -> None:
    options = ("--jobsets", 2, "--set", "task.workload.jobs=30", "--out", tmp_path)
    assert metasched("figure", "cunha-fig5.8", "--runs", HOLD, *options) == 0
    rows = read_table(tmp_path / "cunha-fig5.8.csv", ["key", "learned", "place"])
    learned = [row["place"] for row in rows if row["learned"] == "True"]
    assert len(learned) == len({row["place"] for row in rows})
    assert {row["key"] for row in rows if row["learned"] == "True"} == {HOLD}
