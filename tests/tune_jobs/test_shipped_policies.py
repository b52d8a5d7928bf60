"""Trained policies that come with the package: their files, and commands that take their names."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds import get_spec, shipped_policies
from rllib_configs.config.loading import load_config, preset_names
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import load_policy, read_weights, write_policy
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs import cli
from tune_jobs.measuring.guarding import load_decided
from tune_jobs.measuring.trained_runs import (
    check_fits,
    find_runs,
    group_by_experiment,
    load_runs,
)
from tune_jobs.tables.frames import read_table

ORDER = "hpc-order"
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
    config = load_config(ORDER, ["training.bilinear=true"])
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
    weights, config = read_weights(ORDER)
    write_policy(weights, config, tmp_path, as_text=True)
    file = tmp_path / "weights.json"
    file.write_text(json.dumps(damage(json.loads(file.read_text()))))
    with pytest.raises(InputError, match=words) as error:
        load_policy(tmp_path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_it_stands_apart_from_runs_of_its_preset(tmp_path: Path) -> None:
    """It was chosen among seeds, so it is none of a sample of them."""
    weights, config = read_weights(ORDER)
    other = config.model_copy(update={"seed": config.seed + 1})
    write_policy(weights, other, tmp_path / "mine" / "policy", as_text=True)
    runs = load_runs(find_runs([ORDER, str(tmp_path / "mine")]), "sample")
    assert [(key, len(group)) for key, group in group_by_experiment(runs)] == [
        (ORDER, 1),
        ("mine", 1),
    ]


def test_a_run_of_its_preset_is_called_by_its_folder(tmp_path: Path) -> None:
    weights, config = read_weights(ORDER)
    for name in ("mine", ORDER):
        write_policy(weights, config, tmp_path / name / "policy", as_text=True)
        (run,) = load_runs(find_runs([str(tmp_path / name)]), "sample")
        ((shown, _),) = group_by_experiment([run])
        assert shown == ("mine" if name == "mine" else f"{tmp_path.name}/{ORDER}")


@pytest.mark.parametrize(
    "line",
    [
        "compare --policies sjf,hpc-hold --config hpc-smoke",
        "train hpc-universal --show config",
        "train hpc-order --set training.start=hpc-limits",
        "compare --decide --policies hpc-no-worse",
    ],
)
def test_policies_that_are_gone_are_refused_in_a_sentence(line: str, capsys: Shown) -> None:
    assert metasched(*line.split()) == 2
    sentence = capsys.readouterr().err
    assert "was removed: it held jobs back" in sentence
    assert sentence.count("\n") == 1


def test_messages_call_it_by_its_name() -> None:
    (run,) = load_runs(find_runs([ORDER]), "argmax")
    with pytest.raises(InputError, match=f"^{ORDER} was trained for another world"):
        check_fits(run, get_spec("deeprm").world())


def test_compare_takes_its_name_and_shows_the_price(capsys: Shown) -> None:
    options = ("--jobsets", 6, "--decode", "argmax", "--json")
    assert metasched("compare", "--policies", f"saf,{ORDER}", *SMALL, *options) == 0
    rule, learned = json.loads(capsys.readouterr().out)
    assert (learned["key"], learned["learned"]) == (ORDER, True)
    assert (learned["trained_on"], learned["trained_at"]) == ("any-site", None)
    assert learned["wait"] < 1.1 * rule["wait"]
    assert learned["utilization_to_end"] > 0.97 * rule["utilization_to_end"]


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
    log = write_site_log(tmp_path / "jobs.csv", 60)
    machine = ("--processors", 16, "--gpus", 4)
    assert metasched("replay", log, "--policies", f"saf,{ORDER}", *machine, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["policy"] for row in found["replay"]} == {"saf", ORDER}


def test_the_guard_refuses_it_where_it_is_too_dear_and_keeps_the_decision(
    tmp_path: Path, capsys: Shown
) -> None:
    out = tmp_path / "decision.json"
    options = (*SMALL, "--jobsets", 4, "--out", tmp_path, "--json")
    assert (
        metasched("compare", "--decide", "--policies", ORDER, *options, "--limit", "longest_wait=0")
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert not found["learned_is_used"]
    dear = {one["policy"]: one["too_dear"] for one in found["candidates"]}
    assert "longest waits" in dear[ORDER]
    assert load_decided(out).name == found["chosen"]
    out.write_text(json.dumps({**json.loads(out.read_text()), "use": "policy"}))
    assert load_decided(out).name == ORDER


def test_figures_take_its_name(tmp_path: Path) -> None:
    options = ("--jobsets", 2, "--set", "task.workload.jobs=30", "--out", tmp_path)
    assert metasched("figure", "hpc-sizes", "--runs", ORDER, *options) == 0
    rows = read_table(tmp_path / "hpc-sizes.csv", ["key", "learned", "place"])
    learned = [row["place"] for row in rows if row["learned"] == "True"]
    assert len(learned) == len({row["place"] for row in rows})
    assert {row["key"] for row in rows if row["learned"] == "True"} == {ORDER}
