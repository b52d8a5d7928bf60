"""What a config may say, and what a preset comes to: --show settings and --show config."""

import re
from functools import cache

import pytest
import yaml

from rllib_configs.config.loading import load_config, preset_names
from rllib_configs.config.registries import ALGORITHMS, NETWORKS
from rllib_configs.config.schema import prepare
from rllib_configs.config.settings import list_settings, settings_of
from tune_jobs import cli
from tune_jobs.tracking.values import flatten

SETTINGS = list_settings()
KEYS = {setting.key for setting in SETTINGS}


def printed(capsys, *line):
    assert cli.run(cli.metasched, ["train", *line]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("preset", preset_names())
def test_a_printed_config_loads_again(preset, capsys, tmp_path):
    change = "training.lr=2e-3"
    file = tmp_path / "mine.yaml"
    file.write_text(printed(capsys, preset, "--show", "config", "--set", change, "--seed", "3"))
    config = load_config(file)
    wanted = prepare(load_config(preset, [change, "seed=3"]))
    assert config.to_dict() == wanted.to_dict()
    assert config.seed == 3
    assert prepare(config).to_dict() == wanted.to_dict()


def test_a_printed_config_says_what_a_run_would_record_and_trains_nothing(capsys, tmp_path):
    run = tmp_path / "run"
    shown = yaml.safe_load(printed(capsys, "deeprm-ppo", "--show", "config", "--run", str(run)))
    assert shown["training"]["gae_lambda"] == 0.6  # a default
    assert not run.exists()


def test_what_cannot_be_loaded_is_not_printed(capsys):
    assert cli.run(cli.metasched, ["train", "deeprm", "--show", "config", "--set", "a.b=1"]) == 2
    assert capsys.readouterr().out == ""


def test_every_key_of_every_preset_is_listed_with_its_meaning():
    for preset in preset_names():
        for key in flatten(load_config(preset).to_dict()):
            above = {key.rsplit(".", depth)[0] for depth in range(key.count(".") + 1)}
            assert above & KEYS, key
    assert all(setting.meaning for setting in SETTINGS), [s.key for s in SETTINGS if not s.meaning]


def test_options_say_whose_they_are():
    for registry in (ALGORITHMS, NETWORKS):
        for name in registry.names():
            for option in registry.get(name).options.model_fields:
                key = f"training.{option}"
                listed = [s for s in SETTINGS if s.key == key or s.key.startswith(f"{key}.")]
                owners = {s.owner for s in listed if name in s.owner.split()}
                assert len(owners) == 1, (name, option, owners)


@cache
def numbers_of(algorithm, network):
    """What a config has with these."""
    chosen = {"training.algorithm": algorithm, "training.network": network}
    return flatten(load_config("deeprm", chosen).to_dict())


def test_a_default_is_what_a_config_has():
    """Those that belong to a choice hold where that choice is made."""
    chosen = ("runs", "task.objective", "training.algorithm", "training.network")
    for setting in SETTINGS:
        elsewhere = setting.owner and not setting.key.startswith("training.")
        if not setting.default or elsewhere or setting.key in chosen:
            continue
        owner = re.match(r"the algorithms? (\w+)", setting.owner)
        network = re.search(r"the networks? (\w+)", setting.owner)
        algorithm, network = (
            owner[1] if owner else "reinforce",
            network[1] if network else "set_scorer",
        )
        if not NETWORKS.get(network).has_gradient:
            algorithm = "evolution"
        found = numbers_of(algorithm, network).get(setting.key, {})
        assert found == yaml.safe_load(setting.default), setting.key


def test_settings_are_shown(capsys):
    shown = printed(capsys, "--show", "settings")
    assert "training.lr=0.001" in shown
    words = " ".join(shown.split())
    assert re.search(
        r"training\.clip=0\.2 PPO's clip .*Above 0. For the algorithms ppo and maml", words
    )
    assert "task.workload.kind=trace" in shown
    assert "task.world.rules=paper" in shown


@pytest.mark.parametrize("preset", ["hpc-smoke", "deeprm-ppo", "panda-small"])
def test_settings_of_a_preset_are_all_that_its_config_has(preset):
    config = load_config(preset)
    listed = {one.key: yaml.safe_load(one.default) for one in settings_of(config)}
    assert {key: value for key, value in listed.items() if value != {}} == flatten(config.to_dict())


def test_settings_of_a_preset_are_shown_with_its_changes(capsys):
    shown = " ".join(
        printed(capsys, "--show", "settings", "hpc-smoke", "--set", "training.lr=0.5").split()
    )
    assert "training.lr=0.5 Learning rate" in shown
    assert "task.workload.kind=lublin Name that chooses the workload" in shown
    assert "task.world.rules" not in shown


def test_who_names_no_preset_trains_for_operation(capsys):
    assert printed(capsys, "--show", "config") == printed(
        capsys, "deeprm-operation", "--show", "config"
    )
    shown = yaml.safe_load(printed(capsys, "--show", "config", "--set", "training.iterations=9"))
    assert (shown["name"], shown["training"]["iterations"]) == ("deeprm-operation", 9)
