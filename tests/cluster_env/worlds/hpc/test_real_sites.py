"""The family of real sites: which jobs its windows hold, at which bound, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.workloads.swf import write_swf
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.real_sites import Draw, real_sites
from cluster_env.worlds.hpc.workloads import HPCLog
from rllib_configs.config.loading import load_config
from rllib_configs.search_problem import SearchProblem, prepare

SMALL, LARGE = 8, 64
JOBS = 1000


def write_site(path: Path, processors: int, header: bool = True, run: int = 500) -> None:
    """Jobs that ask for as much as the machine has, or a little more, while they arrive."""
    rng = np.random.default_rng(processors)
    duration = rng.integers(1, 2 * run, JOBS)
    columns = {
        "submit": np.sort(rng.integers(0, JOBS * run // 2, JOBS)),
        "run": duration,
        "requested_time": 2 * duration,
        "processors": rng.integers(1, processors + 1, JOBS),
    }
    write_swf(path, columns, {"MaxProcs": processors} if header else {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sites, and a file that is none."""
    write_site(tmp_path / "small.swf.gz", SMALL)
    write_site(tmp_path / "large.swf", LARGE)
    (tmp_path / "README.md").write_text("two logs")
    return tmp_path


def drawn(family: Draw, split: Split = Split.TRAIN, count: int = 30, world: HPC | None = None):
    return [family(split, world or HPC(), 60, np.random.default_rng(k)) for k in range(count)]


@pytest.mark.parametrize("split", [Split.TRAIN, Split.VALIDATION])
def test_windows_hold_jobs_of_their_split_alone(folder: Path, split: Split) -> None:
    path = folder / "small.swf.gz"
    submit = np.concatenate(
        [one.attributes["submit"] for _, one in drawn(real_sites([path], (), 0.0, 2.0), split)]
    )
    allowed = HPCLog(path, (SMALL,)).part(split).recorded.submit
    assert np.isin(submit, allowed).all()
    assert np.unique(submit).size > allowed.size / 2


def test_windows_have_so_many_jobs_on_average_behind_a_warm_up(folder: Path) -> None:
    pairs = drawn(real_sites([folder], (), 0.0, 2.0))
    counted = [jobset.counted.sum() for _, jobset in pairs]
    assert np.mean(counted) == pytest.approx(60, rel=0.2)
    assert all(jobset.counted.argmax() > 0 for _, jobset in pairs)


def test_sites_are_drawn_equally_often_beside_generated_ones(folder: Path) -> None:
    family = real_sites([folder], (), 0.5, 2.0)
    sizes = [world.processors for world, _ in drawn(family, count=200)]
    for processors in (SMALL, LARGE):
        assert sizes.count(processors) == pytest.approx(50, abs=20)


def test_a_site_that_is_left_out_is_not_met(folder: Path) -> None:
    family = real_sites([folder], ["large"], 0.0, 2.0)
    assert {world.processors for world, _ in drawn(family)} == {SMALL}


def test_the_bound_is_that_of_the_site_unless_the_world_has_one(folder: Path) -> None:
    """Twice as much for twice the factor; one for all windows of a site, but not of drawn sites."""
    bounds = {
        factor: {world.max_wait for world, _ in drawn(real_sites([folder], ["large"], 0.0, factor))}
        for factor in (0.0, 1.0, 2.0)
    }
    (once,) = bounds[1.0]
    assert once > 1
    assert bounds[2.0] == {2 * once}
    assert bounds[0.0] == {0}
    fixed = drawn(real_sites([folder], (), 0.5, 2.0), world=HPC(max_wait=77))
    assert {world.max_wait for world, _ in fixed} == {77}
    assert len({world.max_wait for world, _ in drawn(real_sites([folder], (), 1.0, 2.0))}) > 5


def settings(folder: Path, *more: str) -> list[str]:
    """Of a search on the sites of a folder."""
    return ["training.family=real-sites", f"training.sites.logs={folder}", *more]


def test_a_search_draws_the_same_windows_again(folder: Path) -> None:
    config = prepare(load_config("hpc-order", settings(folder, "task.workload.jobs=40")))
    again = load_config("hpc-order", settings(folder, "task.workload.jobs=40"))
    for split in (Split.TRAIN, Split.VALIDATION):
        pairs = [list(SearchProblem(one).draw(split, range(6))) for one in (config, again)]
        for (_, world, (jobset,), _), (_, other, (same,), _) in zip(*pairs, strict=True):
            assert world == other
            assert np.array_equal(jobset.arrival, same.arrival)
            assert np.array_equal(jobset.duration, same.duration)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("training.sites.logs={folder}/none", "there is no file or folder .*none of job logs"),
        ("training.sites.logs={folder}/empty", "no job log in .*empty"),
        ("training.sites.logs=[]", "set training.sites.logs to a folder"),
        ("training.sites.leave_out=smal", "did you mean 'small'"),
        ("training.sites.leave_out=[small,large]", "leaves no site to train on"),
        ("training.sites.logs={folder}/empty/bare.csv", "how many processors the machine has"),
        ("training.family=real-sight", "did you mean 'real-sites'"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(folder: Path, change: str, words: str) -> None:
    (folder / "empty").mkdir()
    (folder / "empty" / "bare.csv").write_text("arrival,duration,processors\n0,1,1\n")
    config = load_config("hpc-order", settings(folder, change.format(folder=folder)))
    with pytest.raises(InputError, match=words):
        prepare(config)
