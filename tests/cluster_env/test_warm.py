"""Warming up leaves nothing to compile."""

from tests.cold_functions import cold_functions

AT_FIRST_USE = {"cluster_env.worlds.hpc.site.copying.take_over_rows"}
"""Decisions at a site take minutes to compile, and most users never take one."""


def test_every_compiled_function_of_the_world_is_called() -> None:
    cold, how_many = cold_functions("cluster_env", "cluster_env.warm")
    assert cold == AT_FIRST_USE
    assert how_many > 100
