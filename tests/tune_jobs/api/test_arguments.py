"""Arguments of a wrong kind: one sentence from every public function, before any work."""

import inspect
import math
import pickle
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import metasched
from cluster_env.core.spec import environment_ids
from metasched.arguments import _words
from metasched.gymnasium_ids import IDS

FUNCTIONS = [
    name for name in metasched.__all__ if inspect.isfunction(getattr(metasched, name, None))
]


def task():
    return metasched.load_config("deeprm").task.build()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_takes_an_argument_that_it_does_not_have(name):
    """Also those with options of a world: of no world is this one."""
    function = getattr(metasched, name)
    empty = inspect.Parameter.empty
    required = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is empty and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    given = ["deeprm" if one.annotation is not empty else None for one in required]
    with pytest.raises(metasched.InputError):
        function(*given, no_such_thing=1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_takes_what_is_nothing_of_ours(name):
    function = getattr(metasched, name)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation in (inspect.Parameter.empty, object):
            continue
        thing = {parameter.name: object()}
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        with pytest.raises(metasched.InputError, match=name):
            function(**thing)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metasched.make_env("DeepRM-v0", loda=1), "unknown option of the environment"),
        (lambda: metasched.make_env(task(), wrld=1), "did you mean 'world'"),
        (lambda: metasched.make_vec_env("DeepRM-v0", loda=1), "unknown option of the environment"),
        (lambda: metasched.compare("sjf"), r"for 'policies' a list \(text or Path or Policy\)"),
        (lambda: metasched.compare(["sjf"], at=0.7), r"for 'at' a list \(a number\), but 0.7"),
        (lambda: metasched.compare(["sjf"], at=["0.7"]), "for 'at' a list"),
        (lambda: metasched.compare(["sjf"], seed="3"), "for 'seed' a whole number"),
        (lambda: metasched.compare(["sjf"], num_job_sets=3), "unknown option 'num_job_sets'"),
        (lambda: metasched.compare(["sjf"], config="hpc-order"), "calls this on, not config"),
        (lambda: metasched.train("deeprm", "training.lr=1"), "for 'changes' a list"),
        (lambda: metasched.train("deeprm", chnages={}), "did you mean 'changes'"),
        (lambda: metasched.read_task("objective=makespan", None), "for 'texts' a list"),
        (lambda: metasched.get_heuristic("sjf", "deeprm"), "for 'world' World"),
        (lambda: metasched.get_heuristic("sjf"), "missing a required argument: 'world'"),
        (lambda: metasched.load_config(None), "but None was given"),
        (lambda: metasched.load_policy("deeprm-operation", decode="greedy"), "'sample' or"),
        (lambda: metasched.adapt("deeprm-operation", None), "for 'task' Task or a list"),
        (lambda: metasched.replay("example", "fcfs:easy"), "for 'policies' a list"),
        (lambda: metasched.summarize(None), "for 'schedule' Schedule"),
        (lambda: metasched.record("sjf", "a.parquet"), "records are made by agents that learn"),
        (lambda: metasched.bench(["simulatr"]), "did you mean 'simulator'"),
    ],
)
def test_a_wrong_kind_is_refused_in_one_sentence(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(metasched.InputError, match=message):
        call()
    assert not any(tmp_path.iterdir())


@cache
def calls():
    """Calls that would work, of functions with numbers; other arguments are added."""
    home = task()
    jobsets = home.jobsets(metasched.Split.HELD_OUT, [0])
    sjf = metasched.get_heuristic("sjf", home.world)
    schedule = metasched.evaluate(sjf, jobsets, home.world)
    section = metasched.load_config("deeprm").task
    return {
        "make_vec_env": (),
        "evaluate": (sjf, jobsets, home.world),
        "summarize": (schedule,),
        "compare": (["sjf"],),
        "guard": ("deeprm-operation",),
        "read_task": (["objective=makespan"], section),
        "adapt": ("deeprm-operation", ["objective=makespan"]),
        "replay": ("example", ["fcfs:easy"]),
        "whatif": ("example", ["processors=64"]),
        "report": ("example",),
        "generate": ("jobs.swf",),
        "starts": ("fcfs:easy", "example"),
        "figure": ("deeprm-fig4",),
        "results": ("ppo",),
        "train": ("deeprm-smoke",),
        "tune": ("smoke",),
        "choose": (["hpc-order"],),
        "study": (["runs/maml"],),
        "record": ("panda-elastic", "records.parquet"),
        "bench": (["simulator"],),
    }


NUMBERS = [
    (name, parameter.name, number)
    for name in FUNCTIONS
    for parameter in inspect.signature(getattr(metasched, name)).parameters.values()
    if (words := _words(parameter.annotation)).startswith(("a whole number", "a number"))
    for number in (-1, math.nan, "3", None)
    if number is not None or "None" not in words
]


@pytest.mark.parametrize(("name", "parameter", "number"), NUMBERS)
def test_what_is_no_possible_number_is_refused(name, parameter, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(metasched.InputError):
        getattr(metasched, name)(*calls()[name], **{parameter: number})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "call",
    [
        lambda: metasched.JobSet.of(None, [1], [[1]]),
        lambda: metasched.JobSet.of(["a"], [1], [[1]]),
        lambda: metasched.JobSet.of([0.5], [1], [[1]]),
        lambda: metasched.JobSet.of([0], [math.inf], [[1]]),
        lambda: metasched.JobSet.of([0], [2**31], [[1]]),
        lambda: task().jobsets("held_out", [0]),
        lambda: metasched.summarize(calls()["summarize"][0]).mean("slow"),
        lambda: metasched.summarize(calls()["summarize"][0]).rows("slow"),
        lambda: metasched.format_rows([]),
        lambda: metasched.get_spec(None),
        lambda: metasched.make_env("DeepRM-v0", workload=3),
        lambda: metasched.make_env("DeepRM-v0", objective=None),
        lambda: metasched.make_env("DeepRM-v0", observation=3),
        lambda: metasched.make_env("DeepRM-v0", mask_in_observation="yes"),
        lambda: metasched.load_config("deeprm", {3: 1}),
        lambda: metasched.guard("deeprm-operation", limits={"wait": -1.0}),
        lambda: metasched.compare(["sjf"], limits={"patience": 0.1}),
        lambda: metasched.PPOConfig().environment(3),
        lambda: metasched.MAMLConfig().environment(env_config=["workload.load=1"]),
        lambda: metasched.EvolutionConfig().training(lr="fast").validate(),
        lambda: metasched.ReinforceConfig().env_runners(num_env_runners=-1).validate(),
    ],
)
def test_a_wrong_kind_is_refused_below_functions_too(call):
    with pytest.raises(metasched.InputError):
        call()


def test_numbers_of_numpy_and_tuples_are_of_the_right_kind():
    rows = metasched.compare(("sjf",), at=np.array([0.7]), num_jobsets=np.int64(2), seed=np.int8(1))
    assert rows[0]["load"] == 0.7
    assert metasched.build_world({"kind": "deeprm"}).kind == "deeprm"


def test_functions_are_pickled_by_their_public_name():
    for name in FUNCTIONS:
        function = getattr(metasched, name)
        assert pickle.loads(pickle.dumps(function)) is function


def test_ids_of_environments_are_those_of_the_worlds():
    from gymnasium import registry

    of_worlds = {name for name in environment_ids() if not name.startswith("Toy")}
    assert set(IDS) == of_worlds & set(IDS)
    shipped = {name: registry[name].kwargs for name in of_worlds if name in IDS}
    assert shipped == dict(IDS)
    ours = {n for n, one in registry.items() if str(one.entry_point).startswith("cluster_env.envs")}
    assert {
        name for name in ours if name.startswith(("DeepRM", "HPC", "Accrual", "Graphs"))
    } == set(IDS)


@pytest.mark.parametrize("first", ["gymnasium, metasched", "metasched, gymnasium"])
def test_gymnasium_makes_environments_once_metasched_is_imported(first):
    code = (
        f"import {first}, sys; assert 'cluster_env' not in sys.modules;"
        "print(gymnasium.make('DeepRM-v0').reset(seed=0)[0].shape);"
        "print(gymnasium.make_vec('HPC-v0', num_envs=2).num_envs)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["(20, 223)", "2"]
