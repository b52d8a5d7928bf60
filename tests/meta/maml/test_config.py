"""What the config of a maml run may say."""

import pytest

from cluster_env.core.errors import InputError
from meta.maml.options import MAMLOptions, maml_options
from meta.tasks import get_distribution
from rllib_configs.config.loading import load_config, make_config
from rllib_configs.config.schema import ExperimentConfig, prepare

NAMES = {"algorithm": "maml", "network": "set_scorer"}
MAML = {"training": NAMES}


def test_only_maml_has_its_options() -> None:
    training = make_config(MAML).training
    assert isinstance(training, MAMLOptions)
    assert (training.family, training.tasks, training.inner_steps) == ("objectives", 8, 1)
    assert make_config({"training": NAMES | {"tasks": 3}}).training.tasks == 3
    assert not isinstance(make_config({}).training, MAMLOptions)
    assert make_config(make_config(MAML).to_dict()) == make_config(MAML)


def test_a_policy_of_another_algorithm_adapts_with_the_defaults() -> None:
    assert maml_options(load_config("deeprm-ppo")) == MAMLOptions()
    ours = load_config("deeprm-maml", ["training.inner_rate=0.5"])
    assert maml_options(ours).inner_rate == 0.5


@pytest.mark.parametrize(
    ("training", "wanted"),
    [
        ({"tasks": 3}, "training.tasks is not used by the algorithm reinforce; it .* maml"),
        ({"algorithm": "maml"}, r"maml needs a network that scores items .*\(bilinear_scorer, set"),
        (NAMES | {"taks": 3}, "did you mean 'training.tasks'"),
        (NAMES | {"order": "third"}, "training.order"),
        (NAMES | {"tasks": 0}, "training.tasks"),
        (NAMES | {"fresh_jobsets": True}, "training.fresh_jobsets is not used by .* maml"),
        (NAMES | {"critic": True}, r"training.critic needs .*\(ppo; dense, set_scorer\), but maml"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(training: dict, wanted: str) -> None:
    with pytest.raises(InputError, match=wanted) as error:
        make_config({"training": training})
    assert "\n" not in str(error.value)


def test_overrides_reach_options_that_the_file_leaves_out() -> None:
    changes = ["training.algorithm=maml", "training.network=set_scorer", "training.inner_steps=3"]
    assert load_config("deeprm", changes).training.inner_steps == 3


@pytest.mark.parametrize("preset", ["deeprm-maml", "deeprm-joint"])
def test_presets_train_on_the_base_of_their_family(preset: str) -> None:
    config = prepare(load_config(preset))
    assert config.task == get_distribution("objectives").base
    assert config.task.world.rules == "released"
    assert prepare(config) == config


def test_a_task_beside_the_family_is_refused() -> None:
    with pytest.raises(InputError, match=r"takes its tasks from training\.family \(objectives\)"):
        prepare(load_config("deeprm-maml", ["task.workload.load=1.1"]))


def test_presets_play_equally_many_episodes_in_both_parts_of_the_run() -> None:
    def episodes(config: ExperimentConfig) -> tuple[float, float]:
        training = config.training
        stage = training.tasks * training.jobsets * training.episodes_per_jobset
        warm_up = training.warm_up * training.iterations
        return (
            stage * warm_up,
            stage * (1 + training.inner_steps) * (training.iterations - warm_up),
        )

    assert episodes(load_config("deeprm-maml")) == pytest.approx(
        episodes(load_config("deeprm-joint"))
    )


def test_task_of_another_algorithm_is_left_alone() -> None:
    config = load_config("deeprm-ppo")
    assert prepare(config) is config


def test_classes_are_adapted_where_jobs_have_some_and_the_network_weighs_them() -> None:
    seen = ["training.adapt=classes", "training.family=users-seen"]
    assert prepare(load_config("hpc-maml", seen)).task.world.num_classes == 6
    for changes in (seen[:1], [*seen, "training.skip_connection=false", "training.start="]):
        with pytest.raises(InputError, match="have none, or the network does not weigh them"):
            prepare(load_config("hpc-maml", changes))
