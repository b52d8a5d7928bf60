"""Configs: what presets, files and --set may say, and the one sentence for what they may not."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.worlds.deeprm.rules import RELEASED_RULES
from cluster_env.worlds.deeprm.trace import TraceWorkload
from cluster_env.worlds.deeprm.workloads import BimodalWorkload, VariedWorkload
from rllib_configs.loading import load_config, make_config, preset_names, write_config
from rllib_configs.schema import ExperimentConfig
from tests.cluster_env.worlds.deeprm.made_up_trace import make_trace


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_built(name):
    config = load_config(name)
    assert config.name == name
    config.task.build_workload()
    config.task.build_objective()
    config.task.build_rules()


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
        ("task.cluster.capacity=[20, 10]", lambda config: config.task.cluster.capacity == (20, 10)),
        ("tracking.uri=null", lambda config: config.tracking.uri is None),
        ('tracking.uri="sqlite:///a: b"', lambda config: config.tracking.uri == "sqlite:///a: b"),
        ("name=with=sign", lambda config: config.name == "with=sign"),
        ("task.rules=released", lambda config: config.task.build_rules() is RELEASED_RULES),
    ],
)
def test_an_override_is_read_as_yaml(override, read):
    assert read(load_config("deeprm", [override]))


def test_the_last_override_wins():
    assert load_config("deeprm", ["seed=1", "seed=2"]).seed == 2


def test_under_the_released_rules_nothing_arrives_first():
    assert load_config("deeprm-released").task.build_workload().first_step == 1
    assert load_config("deeprm").task.build_workload().first_step == 0


def test_a_mixture_weighs_objectives():
    config = load_config("deeprm", ["task.objective={slowdown: 0.5, makespan: 1}"])
    assert config.task.build_objective().busy_cost == 1.0


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("training.learning=1", r"unknown key 'training.learning': .*known in 'training' are"),
        ("training.iteration=1", r"did you mean 'training.iterations'\?"),
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
        ("task.rules=mine", r"task\.rules: .*'paper' or 'released'"),
        ("training.jobsets=7", r"training\.jobsets \(7\) must be a multiple of"),
        ("training.lr", r"--set takes key=value"),
        ("=3", r"--set takes key=value"),
        ("seed.x=3", r"seed: .*integer"),
        ("name.x=3", r"'name' holds no settings"),
        ("training.lr=[1", r"cannot be read"),
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
    busy = written(tmp_path, "task: {workload: {load: 1.1, window: 40}, rules: released}\n")
    config = load_config(busy, ["task.workload.trace=jobs.csv"])
    workload = config.task.build_workload()
    assert isinstance(workload, TraceWorkload)
    assert (workload.path, workload.window) == (tmp_path / "jobs.csv", 40)
    assert workload.first_step == 1
    assert config.to_dict()["task"]["workload"] == {
        "trace": str(tmp_path / "jobs.csv"),
        "window": 40,
    }
    assert config.task.build_part(Split.HELD_OUT).load == workload.part(Split.HELD_OUT).load


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


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["task.workload.trace=missing.csv"], r"cannot read the trace .*missing\.csv: No such"),
        (["task.workload.trace=broken.csv"], r"broken\.csv, line 2: cpu must be a whole number"),
        (["task.workload.trace=jobs.csv", "task.workload.load=0.9"], "so leave out load, or set"),
        (["task.workload.demands=paper", "task.workload.trace=jobs.csv"], "leave out demands"),
        (["task.workload.trace=jobs.csv", "task.workload.window=101"], "is too short"),
        (["task.workload.trace=jobs.csv", "task.cluster.horizon=11"], "the job lasts 12 steps"),
        (["task.workload.trace=jobs.csv", "task.cluster.capacity=[10]"], "1 resources, but"),
        (["task.workload.trace=3"], r"task\.workload\.trace: .*path"),
    ],
)
def test_a_trace_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch, overrides, sentence):
    monkeypatch.chdir(tmp_path)
    make_trace(tmp_path / "jobs.csv")
    (tmp_path / "broken.csv").write_text("arrival,duration,cpu,memory\n0,1,x,2\n")
    with pytest.raises(InputError, match=sentence) as caught:
        load_config("deeprm", overrides)
    assert "\n" not in str(caught.value)


def test_a_trace_of_a_config_takes_no_load(tmp_path):
    trace = make_trace(tmp_path / "jobs.csv")
    path = written(tmp_path, f"task: {{workload: {{trace: {trace}}}}}\n")
    with pytest.raises(InputError, match=r"task\.workload: a trace brings jobs of its own"):
        load_config(path, ["task.workload.load=0.9"])


VARY = (
    "task.workload.vary.load=[0.1, 1.84]",
    "task.workload.vary.window=[50, 200]",
    "task.workload.vary.small_share=[0.6, 0.95]",
)


def test_a_workload_can_vary_and_keeps_its_point(tmp_path):
    config = load_config("deeprm", [*VARY, "task.rules=released"])
    workload = config.task.build_workload()
    assert isinstance(workload, VariedWorkload)
    assert (workload.loads, workload.windows) == ((0.1, 1.84), (50, 200))
    assert (workload.small_shares, workload.base.first_step) == ((0.6, 0.95), 1)
    point = config.task.at_point().build_workload()
    assert isinstance(point, BimodalWorkload)
    assert (point.load, point.window, point.small_share) == (0.7, 50, 0.8)
    write_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config
    alone = load_config(tmp_path / "config.yaml", ["task.workload.vary={}"])
    assert alone.task == load_config("deeprm", ["task.rules=released"]).task


def test_a_trace_replaces_jobs_that_vary(tmp_path):
    varied = written(tmp_path, "task: {workload: {vary: {load: [0.1, 0.5]}}}\n")
    trace = make_trace(tmp_path / "jobs.csv")
    config = load_config(varied, [f"task.workload.trace={trace}"])
    assert isinstance(config.task.build_workload(), TraceWorkload)


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
