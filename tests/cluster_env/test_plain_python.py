"""Kernels run as plain Python, too, so that a debugger and coverage can look into them."""

from tests.cluster_env.one_episode import starts
from tests.waiting import run_python


def test_each_world_plays_an_episode_uncompiled() -> None:
    """The same schedules, bit by bit; no warning, as every test has it."""
    module = "tests.cluster_env.one_episode"
    plain = run_python("-W", "error", "-m", module, NUMBA_DISABLE_JIT="1")
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.splitlines() == starts()
