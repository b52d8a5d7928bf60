"""The public Python API: what it offers, that it is quick to import, and what it refuses."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import metasched
from tests.conftest import REPOSITORY
from tests.waiting import PATIENCE_S

ROOTS = os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "tune_jobs" / "api")))
HEAVY = ("ray", "torch", "mlflow", "numba", "gymnasium", "numpy", "pydantic", "click")


def test_it_comes_from_this_repository():
    assert Path(metasched.__file__).is_relative_to(REPOSITORY)


def test_an_import_takes_no_time_and_imports_no_library(tmp_path):
    """CPU time of the process, which other processes do not change; the limit is 0.2 s."""
    code = (
        "import sys, time; began = time.process_time(); import metasched;"
        "used = time.process_time() - began; dir(metasched);"
        f"heavy = set({HEAVY}) & set(sys.modules); print(used, *heavy)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ROOTS},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    used, *heavy = done.stdout.split()
    assert not heavy
    assert float(used) < 0.2


def test_environments_need_neither_ray_nor_pytorch(tmp_path):
    code = (
        "import sys, metasched; metasched.make_env(); metasched.heuristics(); metasched.evaluate;"
        "assert not {'ray', 'torch', 'mlflow'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ROOTS},
        cwd=tmp_path,
        timeout=PATIENCE_S,
        check=True,
    )


def typed_names():
    """From names to modules, as type checkers see them."""
    source = ast.parse(Path(metasched.__file__).read_text())
    (block,) = (node for node in source.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {name.name: node.module for node in imports for name in node.names}


def test_type_checkers_see_what_is_imported():
    assert typed_names() == metasched._HOMES
    assert sorted(metasched.__all__) == sorted([*metasched._HOMES, "__version__"])
    assert dir(metasched) == sorted(metasched.__all__)


@pytest.mark.parametrize("name", metasched.__all__)
def test_every_name_is_there_and_explained(name):
    thing = getattr(metasched, name)
    if name == "__version__":
        assert thing.count(".") == 2
        return
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        hints = inspect.signature(thing)
        assert hints.return_annotation is not inspect.Signature.empty
        assert all(
            parameter.annotation is not inspect.Parameter.empty
            for parameter in hints.parameters.values()
        )


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tarin'"):
        metasched.tarin  # noqa: B018
    with pytest.raises(ImportError):
        from metasched import tarin  # noqa: F401


def test_an_environment_is_made_of_a_task():
    task = metasched.load_config("deeprm-ppo", {"task.workload.load": 1.3}).task.build()
    env = metasched.make_env(task, observation="slots")
    assert env.unwrapped.setup.task == task
    observation, _ = env.reset(seed=0)
    assert observation["slots"].shape == (10, 13)
    envs = metasched.make_vec_env(task, 3, observation="state")
    states, infos = envs.reset(seed=0)
    assert (states.shape, infos["action_mask"].shape) == ((3, 83), (3, 11))
    assert metasched.make_vec_env(num_envs=2).num_envs == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metasched.train("deeprm-pop"), "did you mean 'deeprm-ppo'"),
        (lambda: metasched.train("deeprm", {"training.lx": 1}), "unknown key 'training.lx'"),
        (lambda: metasched.resume("nowhere"), "there is no run nowhere"),
        (lambda: metasched.load_policy("nowhere"), "no trained policy in nowhere"),
        (lambda: metasched.adapt("nowhere", ["objective=makespan"]), "no trained policy"),
        (lambda: metasched.compare(["sfj"]), "did you mean 'sjf'"),
        (lambda: metasched.compare(["sjf"], at=[9.0], num_jobsets=2), "load"),
        (lambda: metasched.heuristics("deprm"), "did you mean 'deeprm'"),
        (lambda: metasched.make_env(objective="slow"), "unknown objective"),
    ],
)
def test_input_that_cannot_be_used_is_refused_in_one_sentence(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(metasched.InputError, match=message):
        call()
    assert not any(tmp_path.iterdir())


def test_a_config_is_changed_as_a_preset_is():
    config = metasched.load_config("deeprm-ppo")
    changes = {"training.gae_lambda": 0.9, "task.workload.load": 1.1}
    changed = metasched.load_config(config, changes)
    assert (changed.training.gae_lambda, changed.task.workload.load) == (0.9, 1.1)
    assert changed.to_dict() == metasched.load_config("deeprm-ppo", changes).to_dict()


def test_a_comparison_gives_what_the_command_gives(tmp_path):
    from tune_jobs import cli

    line = ["compare", "--policies", "sjf,packer", "--at", "0.7,1.1", "--jobsets", "20"]
    assert cli.run(cli.metasched, [*line, "--out", str(tmp_path)]) == 0
    rows = metasched.compare(["sjf", "packer"], at=[0.7, 1.1], num_jobsets=20)
    lines = (tmp_path / "comparison.csv").read_text().splitlines()
    column = lines[0].split(",").index("slowdown")
    assert [str(row["slowdown"]) for row in rows] == [x.split(",")[column] for x in lines[1:]]


def test_a_policy_of_ones_own_is_compared_beside_names():
    task = metasched.load_config("deeprm").task.build()
    own = metasched.get_heuristic("hold:3", task.world)
    rows = metasched.compare(["sjf", own], task, num_jobsets=10, warmup=5, objective="makespan")
    assert [row["policy"] for row in rows] == ["sjf", "hold:3"]
    assert {row["metric"] for row in rows} == {"makespan"}
    with pytest.raises(metasched.InputError, match="'hold:3' is named twice"):
        metasched.compare([own, own], task, num_jobsets=10)


def test_windows_of_recorded_jobs_are_long_as_the_command_has_them(tmp_path):
    jobs = tmp_path / "jobs.csv"
    lines = [f"{step},{1 + step % 7},{1 + step % 9},{step % 3}" for step in range(0, 9000, 2)]
    jobs.write_text("\n".join(["arrival,duration,cpu,gpu", *lines, ""]))
    changes = {"task.workload.trace": str(jobs)}
    config = metasched.load_config("deeprm", changes)
    long, same = (
        metasched.compare(["sjf"], num_jobsets=5, **given)[0]
        for given in ({"changes": changes}, {"on": config})
    )
    assert long == same
    assert long["window"] > 100
    assert long["warmup"] == long["window"] // 6
    short = metasched.compare(
        ["sjf"], changes=changes | {"task.workload.window": 60}, num_jobsets=5
    )
    assert (short[0]["window"], short[0]["warmup"]) == (60, 0)
    task = config.task.build()
    as_it_is = metasched.compare(["sjf"], task, num_jobsets=5, warmup=10)
    assert (as_it_is[0]["window"], as_it_is[0]["warmup"]) == (50, 10)
    with pytest.raises(metasched.InputError, match="and not to a task"):
        metasched.compare(["sjf"], task, changes=changes)


def test_a_folder_for_an_adapted_policy_is_new(tmp_path):
    (tmp_path / "kept").touch()
    with pytest.raises(metasched.InputError, match="is not empty"):
        metasched.adapt("nowhere", ["objective=makespan"], out=tmp_path)
