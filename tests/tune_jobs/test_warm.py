"""Warming up leaves nothing to compile for training."""

import pytest

from tests.cold_functions import cold_functions


@pytest.mark.slow
def test_every_compiled_function_of_training_is_called() -> None:
    cold, how_many = cold_functions("rllib_configs", "rllib_configs.warm")
    assert cold == set()
    assert how_many > 20
