"""Settings by key, in the form in which `rllib_configs.loading` takes changes."""

import json
from collections.abc import Mapping
from typing import Any


def as_changes(settings: Mapping[str, Any]) -> list[str]:
    """Typed settings as changes of a config."""
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]
