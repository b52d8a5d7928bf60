"""What tests of commands share."""

from collections.abc import Iterator

import click
import pytest

from tune_jobs.commands.command_line import OptionsCommand, parameter


@pytest.fixture(scope="module")
def as_in_plans() -> Iterator[None]:
    """A command line takes what else only Python and plans of results can say."""

    def get_params(command: OptionsCommand, context: click.Context) -> list[click.Parameter]:
        untyped = [parameter(one) for one in command.fields if not one.is_typed]
        return [*click.Command.get_params(command, context), *untyped]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OptionsCommand, "get_params", get_params)
        yield


@pytest.fixture(scope="module")
def tuned_on_few() -> Iterator[None]:
    """Heuristics are tuned on 4 jobsets and not on 200, to save time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 4)
        yield
