"""Options of expert iteration; needs neither Ray nor PyTorch."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from cluster_env.core.errors import InputError
from rllib_configs.options import BatchedOptions
from rllib_configs.registries import ALGORITHMS, Algorithm
from rllib_configs.sections import Count, Positive, Share, WholeNumber


class ExpertOptions(BatchedOptions):
    """Expert iteration: rollouts correct decisions of the policy, which is fitted to them.

    Each jobset is played once by the present policy. At some of its decisions, the policy's own
    action and the next best ones are played on through sampled futures.
    """

    iterations: Count = 10
    """Number of training iterations of a whole run."""
    jobsets: Count = 64
    """Jobsets per iteration."""
    episodes_per_jobset: Annotated[int, Field(ge=1, le=1)] = 1
    """Must be 1: the policy plays each jobset once."""
    fresh_jobsets: bool = True
    """Whether each iteration draws new jobsets instead of repeating the same ones."""
    jobsets_per_unit: Count = 1
    """Jobsets that a runner plays side by side, as one unit of work; results do not depend on
    it."""
    label_share: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Share of the decisions with a choice at which rollouts compare actions. They take nearly all
    of the time."""
    futures: Annotated[int, Field(ge=2, le=10_000)] = 40
    """Sampled futures at such a decision. With fewer, chance decides more often."""
    others: Count = 3
    """Actions that are compared with the policy's own, at most: the next best by its scores."""
    reach: WholeNumber = 0
    """How far futures reach, in steps or jobs as the world has it; 0: as far as is usual there."""
    errors: Annotated[float, Field(ge=0)] = 3.0
    """Standard errors by which another action has to be better, to be what is learned. Lower values
    learn more actions that are better by chance."""
    memory: Count = 10
    """Iterations whose decisions the policy is fitted to: the present one and those before."""
    temperature: Positive = 1.0
    """What scores are divided by, before a softmax makes probabilities of them."""
    lr: Positive = 0.02
    """Learning rate of the fit, which is made with Adam."""
    fit_steps: Count = 200
    """Steps of the fit, each with all decisions."""
    stay: Annotated[float, Field(ge=0)] = 0.03
    """Weight of the squared distance to the present weights, in the loss of the fit."""
    smoothing: Share = 0.0
    """Share of a target that all compared actions have alike."""
    validation_jobsets: Count = 400
    """Jobsets, new ones in each iteration, on which the fitted weights and those between them and
    the present ones are tried; the best become the policy."""

    validation_warmup: WholeNumber = 0
    """Units of time at the beginning and at the end of a validation jobset whose jobs do not count.
    Without it, delaying jobs until nothing arrives any more seems to help."""

    @model_validator(mode="after")
    def _check_that_rewards_are_whole(self) -> Self:
        if getattr(self, "gamma", 1.0) != 1.0:
            raise InputError(
                "expert_iteration compares undiscounted returns, so training.gamma must be 1, but "
                f"{getattr(self, 'gamma', 1.0):g} was given"
            )
        return self


ALGORITHMS.register("expert_iteration")(
    Algorithm(
        ExpertOptions,
        "rllib_configs.algorithms.expert_iteration:ExpertIterationConfig",
        needs_gradient=False,
        fits_scores=True,
        prepare="rllib_configs.runners.labels:prepare",
    )
)
