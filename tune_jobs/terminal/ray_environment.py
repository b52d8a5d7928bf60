"""What Ray reads from the environment when it is imported; imports nothing itself."""

import os

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Despite its name this makes a local Ray talk over the loopback address only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


def prepare_environment() -> None:
    """Sets it where the user has not."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
