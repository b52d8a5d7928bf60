"""Configs: what presets, files and --set may say, and the one sentence for what they may not."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.log import DeepRMLog
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.config.changes import change
from rllib_configs.config.loading import (
    load_config,
    make_config,
    parse_config,
    preset_names,
    write_config,
)
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.task_schema import TaskSection
from tests.cluster_env.worlds.deeprm.random_trace import make_trace
from tests.waiting import PATIENCE_S


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_built(name):
    config = load_config(name)
    assert config.name == name
    assert TaskSection.of(config.task.build()) == config.task


def test_the_preset_deeprm_is_the_paper():
    training = load_config("deeprm").training
    assert (training.jobsets, training.episodes_per_jobset, training.hidden) == (100, 20, 20)
    assert (training.lr, training.rmsprop_decay, training.rmsprop_eps) == (1e-3, 0.9, 1e-9)
    assert (training.gamma, training.fresh_jobsets) == (1.0, False)
    assert load_config("deeprm").task.workload.load == 0.7


def test_what_is_written_is_read_back(tmp_path):
    config = load_config("deeprm-smoke", ["training.lr=3e-4", "task.objective={slowdown: 0.5}"])
    write_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("training.lr=3e-4", lambda config: config.training.lr == 3e-4),
        ("training.fresh_jobsets=true", lambda config: config.training.fresh_jobsets is True),
        (
            "task.world.cluster.capacity=[20, 10]",
            lambda config: config.task.world.cluster.capacity == (20, 10),
        ),
        ("tracking.uri=null", lambda config: config.tracking.uri is None),
        ('tracking.uri="sqlite:///a: b"', lambda config: config.tracking.uri == "sqlite:///a: b"),
        ("name=with=sign", lambda config: config.name == "with=sign"),
        ("task.world.rules=released", lambda config: config.task.world.rules == "released"),
    ],
)
def test_an_override_is_read_as_yaml(override, read):
    assert read(load_config("deeprm", [override]))


def test_the_last_override_wins():
    assert load_config("deeprm", ["seed=1", "seed=2"]).seed == 2


def test_under_the_released_rules_nothing_arrives_first():
    assert load_config("deeprm-released").task.build().workload.first_step == 1
    assert load_config("deeprm").task.build().workload.first_step == 0


def test_a_mixture_weighs_objectives():
    config = load_config("deeprm", ["task.objective={slowdown: 0.5, makespan: 1}"])
    assert config.task.build_objective().busy_cost == 1.0


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("training.learning=1", r"unknown key 'training.learning': .*known in 'training' are"),
        ("training.iteration=1", r"did you mean 'training.iterations'\?"),
        ("lr=1", r"unknown key 'lr': did you mean 'training.lr'\? known are"),
        ("load=1", r"did you mean 'task.workload.load'\?"),
        ("every=1", r"did you mean 'checkpoint.every' or 'evaluation.every'\?"),
        ("task.world={kind: hpc, scheduling_pass: event}", r"option 'scheduling_pass' was removed"),
        ("trainin.lr=1", r"unknown key 'trainin': did you mean 'training'\?"),
        ("task.workload.lod=1", r"did you mean 'task.workload.load'\?"),
        ("training.lr=fast", r"training\.lr: .*'fast' was given"),
        ("training.lr=-1", r"training\.lr: .*greater than 0, but -1"),
        ("training.lr=.inf", r"training\.lr: .*finite"),
        ("training.episodes_per_jobset=1", r"training\.episodes_per_jobset: .*2"),
        ("task.workload.load=3", r"load 3 is out of reach.*up to 1\.845"),
        ("task.workload.demands=paper", None),
        ("task.objective=slowdwn", r"unknown objective 'slowdwn': did you mean 'slowdown'"),
        ("task.objective={}", r"a mixture needs weights"),
        ("task.world.rules=mine", r"task\.world: unknown rules 'mine': known are paper, released"),
        ("task.world.rules=3", r"task\.world\.rules: .*string, but 3 was given"),
        ("task.world.kind=deprm", r"task\.world\.kind: unknown world 'deprm': .*'deeprm'\?"),
        ("task.world=3", r"task\.world: input should be a table of settings, but 3"),
        ("task.world.max_tim=3", r"did you mean 'task\.world\.max_time'\?"),
        ("task.world.cluster.horzion=3", r"did you mean 'task\.world\.cluster\.horizon'\?"),
        ("task.world.cluster.horizon=0", r"task\.world\.cluster: horizon must lie in 1\.\.255"),
        (
            "task.workload.kind=bimodl",
            r"task\.workload\.kind: unknown workload 'bimodl': .*bimodal",
        ),
        ("task.workload.path=a.csv", r"path is not used by the workload bimodal; .* trace"),
        ("training.algorithm=pppo", r"training\.algorithm: unknown algorithm 'pppo': .*'ppo'\?"),
        (
            "training.network=mlp",
            r"training\.network: unknown network 'mlp': did you mean 'deeprm_mlp'\? known are",
        ),
        ("training.algorithm=3", r"training\.algorithm: unknown algorithm '3'"),
        (
            "training.clip=0.3",
            r"training\.clip is not used by the algorithm reinforce; it belongs to the algorithms "
            r"maml and ppo",
        ),
        (
            "training.show_window=true",
            r"training\.show_window is not used by the network deeprm_mlp; it belongs to the "
            r"network set_scorer",
        ),
        ("training.jobsets_per_unit=0", r"training\.jobsets_per_unit.*greater than or equal to 1"),
        ("training.lr", r"--set takes key=value"),
        ("=3", r"--set takes key=value"),
        ("seed.x=3", r"seed: .*integer"),
        ("name.x=3", r"'name' holds no settings"),
        ("training.lr=[1", r"is not valid YAML"),
        ("training=3", r"training: "),
    ],
)
def test_a_bad_override_gives_one_sentence(override, sentence):
    if sentence is None:
        load_config("deeprm", [override])
        return
    with pytest.raises(InputError) as caught:
        load_config("deeprm", [override])
    assert "\n" not in str(caught.value)
    assert re.search(sentence, str(caught.value)), str(caught.value)


def test_the_paper_text_cannot_reach_high_loads():
    with pytest.raises(InputError, match="out of reach"):
        load_config("deeprm", ["task.workload.demands=paper", "task.workload.load=1.1"])


@pytest.mark.parametrize("changes", [[], ["training.lr=3e-4"], ["task.world.max_time=900"]])
def test_a_config_is_checked_once_and_builds_one_world(monkeypatch, changes):
    built = []
    check = DeepRM.__post_init__
    monkeypatch.setattr(DeepRM, "__post_init__", lambda world: (built.append(1), check(world))[1])
    assert load_config("deeprm-ppo", changes).task.build().world.kind == "deeprm"
    assert len(built) == 1


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("training.lr=true", "training.lr"),
        ("task.world.cluster.horizon=true", "task.world.cluster.horizon"),
        ("task.workload.small_duration=[1, true]", "task.workload.small_duration.1"),
    ],
)
def test_true_is_no_number(override, key):
    with pytest.raises(InputError, match=f"^{re.escape(key)}: input should be a number, not true"):
        load_config("deeprm", [override])


def test_an_unknown_preset_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"unknown preset 'deeprn': did you mean 'deeprm'\?"):
        load_config("deeprn")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1\n- 2\n", "should hold a table of settings, but holds list"),
        ("", "should hold a table of settings, but holds NoneType"),
        ("training: [\n", "is not valid YAML in line 2"),
        ("training: !!python/object/apply:os.system [true]\n", "is not valid YAML"),
        ("\x00", "is not valid YAML|cannot read"),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        load_config(written(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="there is no config file"):
        load_config(tmp_path / "missing.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match="cannot read"):
        load_config(tmp_path / "bytes.yaml")


def test_a_config_cannot_be_changed():
    with pytest.raises(ValidationError):
        load_config("deeprm").seed = 3


def test_plain_data_makes_the_same_config():
    assert make_config({}) == ExperimentConfig()
    assert make_config(ExperimentConfig().to_dict()) == ExperimentConfig()


def test_a_trace_replaces_the_made_up_jobs(tmp_path, monkeypatch):
    make_trace(tmp_path / "jobs.csv")
    monkeypatch.chdir(tmp_path)
    busy = written(
        tmp_path, "task: {world: {rules: released}, workload: {load: 1.1, window: 40}}\n"
    )
    config = load_config(busy, ["task.workload.trace=jobs.csv"])
    workload = config.task.build_workload()
    assert isinstance(workload, DeepRMLog)
    assert (workload.path, workload.window) == (tmp_path / "jobs.csv", 40)
    assert workload.first_step == 1
    written_down = config.to_dict()["task"]["workload"]
    expected = {"kind": "trace", "path": str(tmp_path / "jobs.csv"), "window": 40}
    assert expected.items() <= written_down.items()
    assert config.task.build().position_on(Split.HELD_OUT) == workload.part(Split.HELD_OUT).load


def test_a_trace_is_found_again_from_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    make_trace(tmp_path / "here" / "jobs.csv")
    monkeypatch.chdir(tmp_path / "here")
    config = load_config("deeprm", ["task.workload.trace=jobs.csv"])
    write_config(config, tmp_path / "config.yaml")
    monkeypatch.chdir(tmp_path)
    assert load_config(tmp_path / "config.yaml") == config
    made_up = load_config(tmp_path / "config.yaml", ["task.workload.trace=null"])
    assert made_up.task == load_config("deeprm").task


def test_a_config_is_read_without_the_trace_that_it_names(tmp_path):
    missing = tmp_path / "missing.csv"
    config = parse_config({"task": {"workload": {"kind": "trace", "path": str(missing)}}})
    assert config.task.workload.path == missing
    with pytest.raises(InputError, match=r"task\.workload: cannot read the trace"):
        config.task.build()


def test_another_choice_forgets_what_it_does_not_have_but_not_what_the_user_gives():
    config = load_config("deeprm-generalist", ["training.algorithm=reinforce"])
    assert config.training.window_curriculum == 0.3
    assert "clip" not in config.to_dict()["training"]
    with pytest.raises(InputError, match=r"training\.clip is not used by the algorithm reinforce"):
        load_config("deeprm-ppo", ["training.clip=0.1", "training.algorithm=reinforce"])
    with pytest.raises(InputError, match=r"unknown key 'training\.clpi'"):
        load_config("deeprm-ppo", ["training.algorithm=reinforce", "training.clpi=0.1"])
    changes = ["training.algorithm=ppo", "training.network=deeprm_mlp", "training.clip=0.1"]
    training = load_config("deeprm-generalist", changes).training
    assert (training.clip, training.hidden, training.jobsets) == (0.1, 32, 26)


def test_values_by_their_keys_are_taken_as_they_are():
    rate = 0.1 + 0.2
    changes = {"training.lr": rate, "name": "1e3", "task.world.cluster.capacity": (4, 4)}
    config = load_config("deeprm", changes)
    assert (config.training.lr, config.name) == (rate, "1e3")
    assert config.task.world.cluster.capacity == (4, 4)
    assert load_config("deeprm", ["name='1e3x'"]).name == "1e3x"


def test_configs_travel_between_processes_and_stay_equal():
    for name in preset_names():
        config = load_config(name)
        copy = pickle.loads(pickle.dumps(config))
        assert copy == config
        assert type(copy.training) is type(config.training)
        assert parse_config(config.to_dict()) == config


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["task.workload.trace=missing.csv"], r"cannot read the trace .*missing\.csv: No such"),
        (["task.workload.trace=broken.csv"], r"broken\.csv, line 2: cpu must be a whole number"),
        (
            ["task.workload.trace=jobs.csv", "task.workload.load=0.9"],
            "load is not used by",
        ),
        (["task.workload.demands=paper", "task.workload.trace=jobs.csv"], "demands is not used"),
        (["task.workload.trace=jobs.csv", "task.workload.window=101"], "is too short"),
        (
            ["task.workload.trace=jobs.csv", "task.world.cluster.horizon=11"],
            "the job lasts 12 steps",
        ),
        (["task.workload.trace=jobs.csv", "task.world.cluster.capacity=[10]"], "1 resources, but"),
        (["task.workload.trace=3"], r"task\.workload\.path: .*path"),
    ],
)
def test_a_trace_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch, overrides, sentence):
    monkeypatch.chdir(tmp_path)
    make_trace(tmp_path / "jobs.csv")
    (tmp_path / "broken.csv").write_text("arrival,duration,cpu,memory\n0,1,x,2\n")
    with pytest.raises(InputError, match=sentence) as caught:
        load_config("deeprm", overrides)
    assert "\n" not in str(caught.value)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    rows = "".join(f"{60 * k},60,4\n" for k in range(100))
    path.write_text("arrival,duration,processors\n" + rows)
    return path


def rewritten(folder: Path, config: ExperimentConfig) -> Path:
    write_config(config, folder / "written.yaml")
    return folder / "written.yaml"


def test_a_log_goes_along_to_another_world_without_its_windows(log: Path) -> None:
    changes = ["task.world.kind=hpc", "task.world.processors=64", f"task.workload.trace={log}"]
    data = load_config("deeprm", [*changes, "task.workload.window=900"]).to_dict()
    drawn = load_config(rewritten(log.parent, parse_config(data)), ["task.workload.trace=null"])
    assert (drawn.task.workload.kind, drawn.task.workload.jobs) == ("lublin", 256)
    change(data, ["task.world.kind=deeprm", "task.world.max_time=5000", "task.objective=slowdown"])
    workload = parse_config(data).task.workload
    assert (workload.path, workload.window) == (log, 50)


VARY = (
    "task.workload.vary.load=[0.1, 1.84]",
    "task.workload.vary.window=[50, 200]",
    "task.workload.vary.small_share=[0.6, 0.95]",
)


def test_a_workload_can_vary_and_keeps_its_point(tmp_path):
    config = load_config("deeprm", [*VARY, "task.world.rules=released"])
    workload = config.task.build_workload()
    assert isinstance(workload, BimodalWorkload)
    assert (workload.vary.load, workload.vary.window) == ((0.1, 1.84), (50, 200))
    assert (workload.vary.small_share, workload.first_step) == ((0.6, 0.95), 1)
    point = config.task.build().at_point().workload
    assert (point.load, point.window, point.small_share) == (0.7, 50, 0.8)
    write_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config
    alone = load_config(tmp_path / "config.yaml", ["task.workload.vary={}"])
    assert alone.task == load_config("deeprm", ["task.world.rules=released"]).task


def test_a_trace_replaces_jobs_that_vary(tmp_path):
    varied = written(tmp_path, "task: {workload: {vary: {load: [0.1, 0.5]}}}\n")
    trace = make_trace(tmp_path / "jobs.csv")
    config = load_config(varied, [f"task.workload.trace={trace}"])
    assert isinstance(config.task.build_workload(), DeepRMLog)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("task.workload.vary.loads=[0.1, 1]", "did you mean 'task.workload.vary.load'"),
        ("task.workload.vary.load=[0.1]", r"vary\.load.* field required"),
        ("task.workload.vary.load=[1, 0.1]", "loads from 1 to 0.1 were given"),
        ("task.workload.vary.window=[50, 2000]", "max_time is 1000, but jobs may arrive for 2000"),
        ("task.workload.window=1001", "max_time is 1000, but jobs may arrive for 1001"),
    ],
)
def test_a_mixture_that_cannot_be_used_is_one_sentence(override, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        load_config("deeprm", [override])
    assert "\n" not in str(caught.value)


def test_reading_a_config_loads_neither_ray_nor_pytorch():
    program = (
        "import sys; from rllib_configs.config.loading import load_config; "
        "from rllib_configs.config.schema import prepare; "
        "prepare(load_config('deeprm-maml', ['training.inner_steps=2'])); "
        "assert not {'ray', 'torch', 'mlflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_S)
