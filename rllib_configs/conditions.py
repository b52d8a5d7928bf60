"""The option of networks that can be told what counts."""

from pydantic import field_validator

from cluster_env.core.conditioned import check_conditions
from cluster_env.core.errors import InputError
from rllib_configs.sections import Section, refused


class ConditionOption(Section):
    """An option of networks that can be told what counts."""

    conditioned_on: tuple[str, ...] = ()
    """What the network is told of the objective, by name: objectives, of which it is told the share
    of the weights, and the weights of classes as class_weight_0; so it need not find out. For
    algorithms that learn from several objectives. Unset: it is told nothing."""

    @field_validator("conditioned_on")
    @classmethod
    def _check_conditions(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        try:
            check_conditions(names)
        except InputError as error:
            raise refused(error) from None
        return names
