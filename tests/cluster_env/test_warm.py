"""Warming up leaves nothing to compile."""

from tests.cold_functions import cold_functions


def test_every_compiled_function_of_the_world_is_called() -> None:
    cold, how_many = cold_functions("cluster_env", "cluster_env.warm")
    assert cold == set()
    assert how_many > 100
