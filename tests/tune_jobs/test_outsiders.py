"""Policies of installed packages among the rules: who plays, who peeks, and who fails alone."""

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from cluster_env.core.errors import Failure
from cluster_env.core.policy import Policy
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule, RulePolicy
from cluster_env.worlds.hpc.workloads import LublinWorkload
from tests.conftest import REPOSITORY
from tests.tune_jobs.test_sites import write_log
from tests.waiting import run_python
from tune_jobs.processes.limited import Limits, call_apart
from tune_jobs.recipes.peeking import peeks
from tune_jobs.recipes.site_units import Contender, Unit, measure

PACKAGES = ("package", "maskable_ppo", "kernel_network")
TRAINED = {name: REPOSITORY / "tests" / "extensions" / name for name in PACKAGES[1:]}
ENTRIES = ("root-area", "widest", "maskable-ppo", "kernel-network")
BAD = """
import time
from dataclasses import dataclass, replace
from cluster_env.core.spec import Heuristic
from cluster_env.worlds import get_spec
from cluster_env.worlds.hpc.rules import Rule, RulePolicy

HEURISTICS = get_spec("hpc").heuristics

@dataclass(frozen=True)
class Peeks(RulePolicy):
    def view(self, world):
        return replace(world, run_times="actual")

class Bad:
    def __init__(self, name, act):
        self.name, self.act = name, act

def raises(states, uniforms):
    raise RuntimeError("no idea what to do")

def hangs(states, uniforms):
    time.sleep(1000)

make = lambda world: Peeks("peeks", Rule("sjf"))
HEURISTICS.register("peeks")(Heuristic.unnumbered("peeks", make))
for act in (raises, hangs):
    make = lambda world, act=act: Bad(act.__name__, act)
    HEURISTICS.register(act.__name__)(Heuristic.unnumbered(act.__name__, make))
"""
DRIVER = """
import json, runpy, sys
from tune_jobs import cli
from tune_jobs.figures import registry
from tune_jobs.recipes import site_units, sites
registry.num_local_cpus = lambda: 1
apart = site_units.measure_apart
def measure_apart(unit):
    site_units.START_S = 8.0 if unit.contender.name == "hangs" else 60.0
    return apart(unit)
site_units.measure_apart = measure_apart
sites.RULES, sites.BY_PREDICTIONS = ("fcfs:easy", "sjf:easy"), ()
for line in json.loads(sys.argv[1]):
    if status := cli.run(cli.metasched, line):
        sys.exit(status)
for sys.argv[:] in json.loads(sys.argv[2]):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class SeesRunTimes(RulePolicy):
    """Sorts by what nobody can know."""

    def view(self, world: Any) -> Any:
        return replace(world, run_times="actual")


class SeesLaterJobs:
    """Changes its rule by how many jobs are still to come."""

    name = "sees-later-jobs"

    def play(self, simulator: Any, keys: Any) -> None:
        many = simulator.batch.jobsets[0].num_jobs > 250
        simulator.play(Rule("ljf" if many else "sjf"), keys)

    def act(self, states: Any, uniforms: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("make", "is_caught"),
    [
        (lambda world: get_heuristic("sjf:easy", world), False),
        (lambda world: get_heuristic("random:skip", world), False),
        (lambda world: get_heuristic("fcfs:conservative", world), False),
        (lambda world: SeesRunTimes("sees", Rule("sjf")), True),
        (lambda world: SeesLaterJobs(), True),
    ],
)
@pytest.mark.parametrize("run_times", ["user", "mixed"])
def test_starts_that_change_with_the_future_are_found(
    make: Callable[[HPC], Policy], is_caught: bool, run_times: str
) -> None:
    world = HPC(processors=64, run_times=run_times)
    workload = LublinWorkload(processors=64, jobs=300, load=1.2, estimates="tsafrir")
    jobset = workload.sample(np.random.default_rng(0))
    users = np.arange(jobset.num_jobs) % 5
    jobset = replace(jobset, attributes={**jobset.attributes, "user": users})
    schedule = evaluate(make(world), [jobset], world, run_seed=3)
    sentence = peeks(lambda: make(world), world, jobset, schedule, 3)
    assert sentence.startswith("it peeks: job ") == is_caught
    assert is_caught or not sentence


def half(number: float) -> dict[str, float]:
    print("noise")
    return {"half": np.float64(number) / 2}


def raise_error(number: float) -> None:
    raise ValueError(f"not {number}\nand more")


def sleep(number: float) -> None:
    subprocess.Popen(["sleep", str(number)])
    time.sleep(number)


def hoard(number: float) -> None:
    kept = [np.empty(1)]
    while number:
        kept.append(np.empty(2**27))


def end_at_once(number: float) -> None:
    os._exit(int(number))


@pytest.fixture
def _by_value() -> Iterator[None]:
    """The other process need not import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.integration
@pytest.mark.usefixtures("_by_value")
@pytest.mark.parametrize(
    ("function", "seconds", "message"),
    [
        (raise_error, 60, "^ValueError: not 7.0$"),
        (sleep, 2, "^it was stopped after 2 s$"),
        (hoard, 60, "^it was stopped at 8 GiB of memory$"),
        (end_at_once, 60, "^its process ended with status 7 and no answer$"),
    ],
)
def test_whatever_a_call_does_ends_with_its_process(
    function: Callable[[float], None], seconds: float, message: str
) -> None:
    with pytest.raises(Failure, match=message):
        call_apart(function, 7.0, Limits(seconds))


@pytest.mark.integration
@pytest.mark.usefixtures("_by_value")
def test_a_call_apart_gives_what_it_returns() -> None:
    assert call_apart(half, 7.0, Limits(60)) == {"half": 3.5}


def install(site: Path) -> None:
    """Into a folder, the packages, and a module of policies that do what they must not."""
    copies = []
    for name in PACKAGES:  # building leaves files behind
        source = REPOSITORY / "tests" / "extensions" / name
        copies.append(str(shutil.copytree(source, site.with_name("src") / name)))
    pip = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([*pip, *offline, *copies], check=True, timeout=200)
    (site / "bad_policies.py").write_text(BAD)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What commands have written that were called where the packages are installed."""
    out = tmp_path_factory.mktemp("out")
    install(site := out / "site")
    (out / "logs").mkdir()
    write_log(out / "logs" / "busy.swf", 600, 2.2)
    own = "--set task.workload.kind=at-once --set task.objective=hour --jobsets 2"
    compared = f"compare --config hpc-smoke --policies root-area,widest {own} --out {out}"
    drawn = f"figure sites --trace {out / 'logs'} --out {out}"
    lines = [line.split() for line in ("--version --verbose", compared, drawn)]
    trainings = [
        [str(folder / "train.py"), str(out / f"{name}.json"), steps]
        for (name, folder), steps in zip(TRAINED.items(), ("2048", "1"), strict=True)
    ]
    roots = (site, REPOSITORY, REPOSITORY / "tune_jobs" / "api")
    path, imports = os.pathsep.join(map(str, roots)), "bad_policies"
    done = run_python(
        *("-c", DRIVER, json.dumps(lines), json.dumps(trainings)),
        timeout_s=500,
        **{"PYTHONPATH": path, "METASCHED_IMPORTS": imports},
    )
    assert done.returncode == 0, done.stderr
    (out / "said").write_text(done.stdout + done.stderr)
    return out


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.integration
@pytest.mark.slow
def test_what_packages_enter_is_listed_and_used_by_other_commands(out: Path) -> None:
    listed = " ".join((out / "said").read_text().split())
    for thing in ("heuristic root-area", "heuristic widest", "workload at-once", "objective hour"):
        assert thing in listed
    for package in ("own-package", "maskable-ppo-entry", "kernel-network-entry"):
        assert f"from {package} 0.1.0" in listed
    rows = read(out / "comparison.csv")
    assert [row["policy"] for row in rows] == ["root-area", "widest"]
    assert {(row["metric"], row["jobs"]) for row in rows} == {("hour", "AtOnce")}


@pytest.mark.integration
@pytest.mark.slow
def test_outsiders_are_on_the_leaderboard_and_fail_alone(out: Path) -> None:
    made = {row["policy"]: row for row in read(out / "sites.csv")}
    assert made.keys() >= {*ENTRIES, "sjf:easy"}
    assert not made.keys() & {"peeks", "raises", "hangs"}  # who fails has no row
    bound = {"max-wait": f"{made['sjf:easy']['max_wait']}s"}
    alone = measure(Unit(out / "logs" / "busy.swf", "", options=bound), Contender("sjf:easy"))
    assert float(made["sjf:easy"]["mean_wait"]) == pytest.approx(alone["mean_wait"], rel=1e-6)
    entries = {row["policy"]: row for row in read(out / "sites-entries.csv")}
    assert entries["widest"]["trained_on"] == "undeclared"
    assert entries["kernel-network"]["trained_on"] == "none"
    assert entries["maskable-ppo"]["source"] == "maskable-ppo-entry 0.1.0"
    assert float(entries["maskable-ppo"]["cpu_s"]) > 0
    reasons = {name: row["reason"] for name, row in entries.items() if row["reason"]}
    assert reasons.pop("peeks").startswith("it peeks: job ")
    assert reasons == {
        "raises": "RuntimeError: no idea what to do",
        "hangs": "it was stopped after 9 s",
    }
    said, page = (out / "said").read_text(), (out / "sites.md").read_text()
    for name, reason in reasons.items():
        assert f"{name} on busy: {reason}" in said
        assert f"- `{name}`, busy: {reason}" in page
    board = read(out / "sites-leaderboard.csv")
    over = [row for row in board if row["log"] == "all busy logs"]
    assert {row["policy"] for row in over} == made.keys()
    ranks = [float(row["rank"]) for row in over]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1


@pytest.mark.integration
@pytest.mark.slow
def test_the_trained_entries_can_be_trained_anew(out: Path) -> None:
    for name, folder in TRAINED.items():
        committed = json.loads((folder / f"{name}_entry" / "weights.json").read_text())
        trained = json.loads((out / f"{name}.json").read_text())
        assert {key: np.shape(of) for key, of in trained.items()} == {
            key: np.shape(of) for key, of in committed.items()
        }
