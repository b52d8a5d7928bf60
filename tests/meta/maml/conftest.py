"""A small local Ray for the tests of this folder."""

from tests.rllib_configs.conftest import local_ray

__all__ = ["local_ray"]
