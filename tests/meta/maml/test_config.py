"""What the config of a maml run may say."""

import pytest

from cluster_env.core.errors import InputError
from meta.maml.algorithm import with_base_task
from meta.tasks import get_distribution
from rllib_configs.loading import load_config, make_config
from rllib_configs.schema import ExperimentConfig, MetaSection

MAML = {"training": {"algorithm": "maml", "network": "set_scorer"}}


def test_maml_alone_has_a_section_meta() -> None:
    assert make_config(MAML).meta == MetaSection()
    assert make_config(MAML | {"meta": None}).meta == MetaSection()
    assert make_config(MAML | {"meta": {"tasks": 3}}).meta == MetaSection(tasks=3)
    assert make_config({}).meta is None
    assert make_config(make_config(MAML).to_dict()) == make_config(MAML)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({"meta": {}}, "meta belongs to the algorithm maml, but training.algorithm is reinforce"),
        ({"training": {"algorithm": "maml"}}, "maml needs the network set_scorer"),
        (MAML | {"meta": {"taks": 3}}, "did you mean 'meta.tasks'"),
        (MAML | {"meta": {"order": "third"}}, "meta.order"),
        (MAML | {"meta": {"tasks": 0}}, "meta.tasks"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(data: dict, wanted: str) -> None:
    with pytest.raises(InputError, match=wanted) as error:
        make_config(data)
    assert "\n" not in str(error.value)


def test_overrides_reach_a_section_that_the_file_leaves_out() -> None:
    changes = ["training.algorithm=maml", "training.network=set_scorer", "meta.inner_steps=3"]
    assert load_config("deeprm", changes).meta == MetaSection(inner_steps=3)


@pytest.mark.parametrize("preset", ["deeprm-maml", "deeprm-joint"])
def test_presets_train_on_the_base_of_their_family(preset: str) -> None:
    config = with_base_task(load_config(preset))
    assert config.task == get_distribution("objectives").base
    assert config.task.rules == "released"
    assert with_base_task(config) == config


def test_presets_play_equally_many_episodes_in_both_parts_of_the_run() -> None:
    def episodes(config: ExperimentConfig) -> tuple[float, float]:
        training, meta = config.training, config.meta
        assert meta is not None
        stage = meta.tasks * training.jobsets * training.episodes_per_jobset
        warm_up = meta.warm_up * training.iterations
        return stage * warm_up, stage * (1 + meta.inner_steps) * (training.iterations - warm_up)

    assert episodes(load_config("deeprm-maml")) == pytest.approx(
        episodes(load_config("deeprm-joint"))
    )


def test_task_of_another_algorithm_is_left_alone() -> None:
    config = load_config("deeprm-ppo")
    assert with_base_task(config) is config
