"""Configs that were written before today's keys still mean what they meant."""

from pathlib import Path

import pytest
import yaml

from cluster_env.core.errors import InputError
from rllib_configs.changes import change
from rllib_configs.loading import load_config, make_config, parse_config, write_config
from rllib_configs.migration import migrate, new_key
from rllib_configs.registries import prepare
from rllib_configs.schema import ExperimentConfig

OLD = yaml.safe_load((Path(__file__).parent / "old_configs.yaml").read_text())
"""What `write_config` wrote for each preset, for a run of one, and for a trace."""
PRESETS = sorted(set(OLD) - {"rllib-ppo", "a run of deeprm-maml", "deeprm-ppo on a trace"})


CHANGED = {"demo": ("tracking.model=null", "training.iterations=600")}
"""What presets say otherwise today, which says nothing about a run of before."""


@pytest.mark.parametrize("name", PRESETS)
def test_the_config_of_an_old_run_is_that_of_its_preset(name: str) -> None:
    before = make_config(OLD[name])
    changes = list(CHANGED.get(name, ()))
    if before.training.algorithm != "maml":  # presets are cut into more units today
        changes.append(f"training.jobsets_per_unit={before.training.jobsets_per_unit}")
    assert before == load_config(name, changes)


def test_there_is_an_old_config_of_every_kind() -> None:
    assert {OLD[name]["training"]["algorithm"] for name in PRESETS} == {"reinforce", "ppo", "maml"}
    assert any(OLD[name]["task"]["workload"]["vary"]["load"] for name in PRESETS)


def test_an_old_run_of_maml_keeps_the_base_of_its_family() -> None:
    config = parse_config(OLD["a run of deeprm-maml"])
    assert config == prepare(load_config("deeprm-maml"))
    assert prepare(config) == config


def test_an_old_trace_is_a_workload_of_that_kind() -> None:
    config = parse_config(OLD["deeprm-ppo on a trace"])
    workload = config.task.model_dump(mode="json")["workload"]
    assert {"kind": "trace", "path": "/data/jobs.csv", "window": 40}.items() <= workload.items()
    assert config.task.world.rules == "released"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    rows = "".join(f"{60 * k},60,4\n" for k in range(100))
    path.write_text("arrival,duration,processors\n" + rows)
    return path


@pytest.mark.parametrize("world", ["accrual", "panda"])
def test_the_old_name_of_logs_becomes_todays(world: str, tmp_path: Path, log: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        f"task: {{world: {{kind: {world}}}, workload: {{kind: log, path: {log}, jobs: 8}}}}\n"
    )
    config = load_config(path)
    assert config.task.workload.kind == config.to_dict()["task"]["workload"]["kind"] == "trace"
    assert (config.task.workload.path, config.task.workload.jobs) == (log, 8)
    same = load_config(path, ["task.workload.kind=log", "task.workload.splits=[0.5, 0.7]"])
    assert (same.task.workload.kind, same.task.workload.jobs) == ("trace", 8)
    drawn = load_config(path, ["task.workload.log=null"])
    assert drawn.task.workload.kind in ("poisson", "clustered")
    chosen = load_config(path, ["task.workload.kind=" + drawn.task.workload.kind])
    again = load_config(written(tmp_path, chosen), [f"task.workload.log={log}"])
    assert (again.task.workload.path, again.task.workload.window) == (log, 0)


def written(folder: Path, config: ExperimentConfig) -> Path:
    write_config(config, folder / "written.yaml")
    return folder / "written.yaml"


def test_a_log_goes_along_to_another_world_without_its_windows(log: Path) -> None:
    changes = ["task.world.kind=hpc", "task.world.processors=64", f"task.workload.trace={log}"]
    data = load_config("deeprm", [*changes, "task.workload.window=900"]).to_dict()
    drawn = load_config(written(log.parent, parse_config(data)), ["task.workload.trace=null"])
    assert (drawn.task.workload.kind, drawn.task.workload.jobs) == ("lublin", 256)
    change(data, ["task.world.kind=accrual", "task.objective=utility"])
    workload = parse_config(data).task.workload
    assert (workload.path, workload.jobs, workload.window) == (log, 256, 0)


def test_an_algorithm_that_is_gone_is_named() -> None:
    with pytest.raises(InputError, match=r"the algorithm rllib_ppo is gone.* preset deeprm-ppo"):
        parse_config(OLD["rllib-ppo"])
    with pytest.raises(InputError, match="the algorithm rllib_ppo is gone"):
        load_config("deeprm", ["training.algorithm=rllib_ppo"])


def test_processes_of_learners_are_gone_but_runs_that_had_some_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("resources: {num_runners: 3, num_learners: 2}\n")
    assert load_config(path).resources.num_runners == 3
    with pytest.raises(InputError, match=r"num_learners is gone: .* resources\.num_runners alone"):
        load_config(path, ["resources.num_learners=0"])


@pytest.mark.parametrize("name", PRESETS)
def test_todays_configs_stay_as_they_are(name: str) -> None:
    data = load_config(name).to_dict()
    assert migrate(data) == data
    assert migrate(OLD[name]) == migrate(migrate(OLD[name]))


def test_the_data_that_are_given_are_not_changed() -> None:
    data = {"meta": {"tasks": 3}, "task": {"rules": "released", "workload": {"trace": "a.csv"}}}
    migrate(data)
    assert data["task"] == {"rules": "released", "workload": {"trace": "a.csv"}}


def test_files_and_changes_with_old_keys_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "task: {rules: released, max_time: 300, cluster: {num_slots: 5}}\n"
        "training: {algorithm: maml, network: slot_scorer, shortcut: true}\n"
        "meta: {agreement: false, tasks: 3}\n"
    )
    config = load_config(path, ["meta.inner_steps=2", "task.cluster.horizon=30"])
    world, training = config.task.world, config.training
    assert (world.rules, world.max_time) == ("released", 300)
    assert (world.cluster.num_slots, world.cluster.horizon) == (5, 30)
    assert (training.skip_connection, training.shrink) == (True, False)
    assert (training.tasks, training.inner_steps) == (3, 2)


def test_what_a_user_writes_is_checked_under_old_keys_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("training: {tame: 0.3}\n")
    with pytest.raises(InputError, match=r"training\.equalize is not used by .* reinforce"):
        load_config(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("task.cluster.capacity", "task.world.cluster.capacity"),
        ("task.workload.load", "task.workload.load"),
        ("meta.agreement", "training.shrink"),
        ("meta.family", "training.family"),
        ("training.short_first", "training.window_curriculum"),
    ],
)
def test_keys_by_their_old_names(old: str, new: str) -> None:
    assert new_key(old) == new
