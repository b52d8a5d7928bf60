"""What a sweep may say, and what is refused before anything starts."""

import importlib.util

import pytest
import yaml

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import parse_section
from tune_jobs import cli
from tune_jobs.sweeps.definition import Sweep, load_sweep, sweep_names, write_sweep
from tune_jobs.sweeps.points import (
    check_cpus,
    check_sweep,
    list_points,
    num_trials,
    trial_config,
    trial_seed,
)
from tune_jobs.sweeps.searches import SEARCHES, Search


def sweep(**fields) -> Sweep:
    fields.setdefault("space", {"training.lr": {"log_uniform": [1e-4, 1e-2]}})
    return parse_section(Sweep, {"preset": "deeprm-smoke", **fields})


def refusal(**fields) -> str:
    with pytest.raises(InputError) as caught:
        check_sweep(sweep(**fields))
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestDefinition:
    @pytest.mark.parametrize("name", sweep_names())
    def test_every_named_sweep_can_run(self, name):
        named = load_sweep(name)
        assert named.name == name
        configs = check_sweep(named)
        assert all(config.resources.num_runners == 0 for config in configs)

    def test_what_is_written_is_read_back(self, tmp_path):
        before = sweep(
            settings={"task.workload.load": 1.1},
            space={
                "task.objective": {"choice": ["slowdown", {"slowdown": 1, "makespan": 0.5}]},
                "training.hidden": {"integer": [4, 8]},
            },
            search="optuna",
            trials=3,
        )
        write_sweep(before, tmp_path / "sweep.yaml")
        assert load_sweep(tmp_path / "sweep.yaml") == before

    def test_a_file_is_named_after_itself_and_cannot_run_code(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_text("space: {training.lr: {grid: [1]}}")
        assert load_sweep(path).name == "mine"
        path.write_text("space: !!python/object/apply:os.system ['true']")
        with pytest.raises(InputError, match="not valid YAML"):
            load_sweep(path)

    def test_changes_reach_settings_and_fields(self):
        changed = load_sweep("smoke", [("settings.training.hidden", 4), ("trials", 2)])
        assert changed.settings["training.hidden"] == 4
        assert num_trials(changed) == 12


class TestRefusals:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"space": {"training.lr": {"grdi": [1]}}}, "did you mean 'space.training.lr.grid'"),
            ({"space": {"training.lr": {"grid": [1], "choice": [2]}}}, "grid and choice was given"),
            ({"space": {"training.lr": {"uniform": [2, 1]}}}, "space"),
            ({"space": {"training.lr": {"log_uniform": [0, 1]}}}, "space"),
            ({"settings": {"training.lr": 1}}, "in the space already"),
            (
                {"space": {"training.lr": {"grid": [1]}}, "search": "optuna"},
                r"make training\.lr a choice",
            ),
            ({"search": "optuuna"}, "did you mean 'optuna'?"),
        ],
    )
    def test_what_no_definition_can_say(self, fields, message):
        with pytest.raises(InputError, match=message):
            sweep(**fields)

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"space": {"training.lrr": {"grid": [1]}}}, ["did you mean 'training.lr'?"]),
            ({"space": {"training.lr": {"choice": [0.1, -1]}}}, ["lr=-1", "greater than 0"]),
            (
                {
                    "space": {
                        "training.fresh_jobsets": {"grid": [True, False]},
                        "training.window_curriculum": {"grid": [0.0, 0.5]},
                    },
                    "search": "grid",
                },
                ["fresh_jobsets=False window_curriculum=0.5"],
            ),
            (
                {"space": {"training.hidden": {"choice": [4]}}, "search": "pbt", "trials": 2},
                ["training.hidden", "training.lr"],
            ),
            ({"search": "asha", "asha": {"grace": 1}}, ["evaluation.every is 2"]),
            ({"search": "asha", "asha": {"grace": 4}}, ["asha.grace is 4"]),
            *(
                ({"space": {key: {"grid": [1]}}}, [key])
                for key in ("seed", "runs", "resources.num_runners", "tracking.uri")
            ),
        ],
    )
    def test_what_no_trial_can_be_trained_with(self, fields, words):
        message = refusal(**fields)
        assert all(word in message for word in words)

    def test_pbt_searches_what_is_marked_as_adjustable_also_of_maml(self):
        space = {"training.rates_lr": {"uniform": [10.0, 30.0]}}
        population = {"search": "pbt", "trials": 2, "preset": "deeprm-maml"}
        population["settings"] = {"evaluation.every": 10}
        check_sweep(sweep(space=space, **population))
        message = refusal(space={"training.tasks": {"choice": [4, 8]}}, **population)
        assert "training.tasks does not allow" in message
        assert "training.rates_lr" in message

    def test_a_searcher_that_is_not_installed(self, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(InputError, match=r"pip install 'metasched\[optuna\]'"):
            sweep(search="optuna").strategy.check_installed()


class TestSearches:
    def test_one_of_your_own_comes_in_by_its_registration(self, monkeypatch):
        class Thrifty(Search):
            def check_key(self, key):
                if key.startswith("task."):
                    raise InputError(f"thrifty keeps the task, so it cannot search {key}")

        monkeypatch.setattr(SEARCHES, "_things", dict(SEARCHES._things))
        SEARCHES.register("thrifty")(Thrifty())
        assert len(check_sweep(sweep(search="thrifty", trials=2))) == 2
        message = refusal(search="thrifty", space={"task.workload.load": {"uniform": [0.5, 1]}})
        assert message == "thrifty keeps the task, so it cannot search task.workload.load"


class TestPoints:
    def test_a_trial_depends_on_sweep_seed_and_index_alone(self):
        few, many = list_points(sweep(trials=3)), list_points(sweep(trials=30))
        assert many[:3] == few
        assert list_points(sweep(trials=3, seed=1)) != few
        values = [point.settings["training.lr"] for point in many]
        assert all(1e-4 <= value <= 1e-2 for value in values)
        assert 5 < sum(value < 1e-3 for value in values) < 25  # half of the orders of magnitude

    def test_grids_are_multiplied_and_every_combination_is_drawn_anew(self):
        points = list_points(
            sweep(
                trials=2,
                space={
                    "task.objective": {"grid": ["slowdown", "makespan"]},
                    "training.hidden": {"integer": [1, 1000000]},
                },
            )
        )
        assert [point.settings["task.objective"] for point in points] == [
            *("slowdown", "makespan", "slowdown", "makespan")
        ]
        assert len({point.settings["training.hidden"] for point in points}) == 4

    def test_seeds_are_apart_for_every_trial_and_sweep_and_stand_in_the_config(self):
        seeds = {trial_seed(run, index) for run in range(5) for index in range(200)}
        assert len(seeds) == 1000
        assert max(seeds) < 1 << 32
        one = sweep(seed=3)
        point = list_points(sweep(seed=3, trials=2))[1]
        config = trial_config(one, point)
        assert config.seed == trial_seed(3, 1)
        assert config.training.lr == point.settings["training.lr"]

    def test_a_space_may_hold_presets(self):
        both = sweep(space={"preset": {"grid": ["deeprm-smoke", "deeprm-ppo"]}}, search="grid")
        assert [c.training.algorithm for c in check_sweep(both)] == ["reinforce", "ppo"]


class TestResources:
    def test_a_trial_takes_itself_and_its_runners(self):
        fields = {"resources.num_runners": 3}
        config = check_sweep(sweep(settings=fields))[0]
        check_cpus(config, 4)
        with pytest.raises(InputError, match=r"needs 4 CPUs \(1 \+ 3 runners\), but"):
            check_cpus(config, 3)
        with pytest.raises(InputError, match="a trial needs 1 CPU, but there are 0;"):
            check_cpus(check_sweep(sweep())[0], 0)

    def test_the_command_refuses_before_ray_starts(self, capsys, monkeypatch, tmp_path):
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        monkeypatch.setattr("ray.init", lambda *args, **kwargs: pytest.fail("Ray was started"))
        for args in (
            ["smoke", "--set", "resources.num_runners=1000"],
            ["smok"],
            [],
            ["--resume", str(tmp_path)],
            ["smoke", "--address", "nowhere"],
        ):
            runs = ["--runs", str(tmp_path / "runs")]
            assert cli.run(cli.metasched, ["tune", *args, *runs]) == 2
            assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "runs").exists()


def test_the_list_of_sweeps_is_explained(capsys):
    assert cli.run(cli.metasched, ["tune"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in sweep_names())


def test_yaml_of_a_sweep_holds_plain_data(tmp_path):
    write_sweep(load_sweep("meta"), tmp_path / "sweep.yaml")
    data = yaml.safe_load((tmp_path / "sweep.yaml").read_text())
    assert data["space"]["training.inner_rate"] == {"log_uniform": [0.1, 3.0]}
