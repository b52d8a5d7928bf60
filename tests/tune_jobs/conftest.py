"""What tests of commands share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def tuned_on_few() -> Iterator[None]:
    """Heuristics are tuned on 4 jobsets and not on 200, to save time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 4)
        yield
