"""Pictures of a machine: who ran, until when jobs are expected to run, and who waits."""

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.core.pictures import job_color
from cluster_env.envs import ClusterEnv, ClusterVectorEnv
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.render import draw

MACHINE = {"kind": "hpc", "processors": 8}
JOBS = JobSet.of(
    [0, 0, 600],
    [3600, 1800, 1200],
    [[6], [4], [2]],
    window=601,
    attributes={"estimate": np.array([3600, 3600, 3600])},
)


def environment(**world: object) -> ClusterEnv:
    env = ClusterEnv(world={**MACHINE, **world}, render_mode="rgb_array")
    env.reset(options={"jobset": JOBS})
    return env


def areas(picture: np.ndarray, job: int) -> tuple[int, int]:
    """Pixels in a job's own color, and in the paler one of what is expected."""
    solid = np.asarray(job_color(job), float)
    pale = (solid + 0.55 * (255 - solid)).astype(np.uint8)
    return tuple(int((picture == color).all(axis=2).sum()) for color in (solid, pale))  # type: ignore[return-value]


def test_a_job_keeps_its_color_from_the_queue_through_what_is_expected_to_what_has_run() -> None:
    env = environment()
    waiting = areas(env.render(), 0)
    assert waiting[0] > 1000
    assert waiting[1] == 0
    env.step(0)  # it starts; time passes until the third job comes, which fits beside it
    solid, pale = areas(env.render(), 0)
    assert env.unwrapped.simulator.time[0] == 600
    # A sixth of its hour is over: the rest is expected.
    assert pale == pytest.approx(5 * solid, rel=0.1)
    # The second job asks for more than is left, and has not lost its place.
    assert areas(env.render(), 1)[0] > 1000


def test_what_is_over_is_drawn_for_as_long_as_it_took_and_no_longer() -> None:
    """The jobs ask for an hour; the third needs a third of it."""
    env = environment()
    env.step(0)
    env.step(1)  # the third job; then time passes until the second fits, after the first
    picture = env.render()
    first, third = areas(picture, 0), areas(picture, 2)
    assert first[1] == third[1] == 0
    assert first[0] == pytest.approx(9 * third[0], rel=0.2)  # 6 x 3600 over 2 x 1200


def test_pictures_of_a_jobset_have_one_size_and_differ() -> None:
    env = environment()
    pictures = [env.render()]
    for action in (0, 1, 0):
        env.step(action)
        pictures.append(env.render())
    assert {picture.shape for picture in pictures} == {pictures[0].shape}
    assert all(picture.dtype == np.uint8 and picture.shape[2] == 3 for picture in pictures)
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_each_resource_has_a_row_and_the_longest_queue_is_cut() -> None:
    simulator = HPC(processors=8, memory=5_000_000).simulator()
    many = JobSet.of([0] * 60, [60] * 60, [[8, 5]] * 60, window=1)
    simulator.load([many], get_objective("bounded_slowdown"))
    picture = draw(simulator, 0)
    assert picture.shape[0] > 1.5 * environment().render().shape[0]
    assert areas(picture, 23)[0] > 100
    assert areas(picture, 24) == (0, 0)


def test_every_episode_of_a_vector_is_drawn() -> None:
    vector = ClusterVectorEnv(2, world=MACHINE, render_mode="rgb_array")
    vector.reset(seed=0, options={"jobsets": [None, JOBS]})
    assert np.array_equal(vector.render()[1], environment().render())


def test_an_episode_at_a_site_can_be_drawn() -> None:
    world = {**MACHINE, "site": {"nodes": [{"count": 2, "processors": 4}]}}
    env = ClusterEnv(world=world, render_mode="rgb_array")
    env.reset(options={"jobset": JOBS})
    env.step(0)
    assert draw(env.simulator, 0).shape[2] == 3
