"""When a policy is asked, and what its reward is: the formulations of Cunha's thesis, chapter 4.

=============  ==========  ============  =========================================================
id             asked       `reward`      thesis
=============  ==========  ============  =========================================================
HPC            at events   ``at_start``  none: each start is charged with all that its job costs
HPCBase        every step  ``base``      section 4.4, eq. 4.1
HPCSparse      if one fits ``sparse``    section 4.6.2
HPCReduced     if one fits ``reduced``   sections 4.6.2 and 4.6.3
HPCOptions     if one fits ``options``   section 4.7, eq. 2.18
=============  ==========  ============  =========================================================

The online cost of a job in a second is what the objective says; under ``slowdown`` that is
1 / duration (eq. 2.1). ``base``: minus the online cost of all jobs in the system while time passes;
starting a job takes no time and so costs nothing (eq. 4.1). ``sparse``: of the time between two
decisions only one time step counts, and none after a start, since intermediate rewards are lost
(figure 4.4). ``reduced``: the same of the waiting jobs that the policy sees alone. ``options``: of
these jobs all the time until the next decision, discounted by the second (eq. 2.18). Training may
then use ``gamma`` 1, as section 4.7.3 does with PPO, or the same discount by the second from one
decision to the next (eq. 2.19); anything else would discount twice, and is refused.

Figure 4.4 counts a job that runs in the semi-MDP, section 4.7.2 jobs that wait alone; ``options``
follows the section. The thesis lets an empty machine wait, which never ends under a policy that
always does; here the oldest job starts instead.
"""

from dataclasses import dataclass

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown

AT_START, SYSTEM, WINDOW = range(3)

REWARDS = {
    "at_start": (AT_START, True),
    "base": (SYSTEM, True),
    "sparse": (SYSTEM, False),
    "reduced": (WINDOW, False),
    "options": (WINDOW, True),
}
"""Whose cost counts, and whether all the time between two decisions does."""


@dataclass(frozen=True)
class Decisions:
    """When a policy is asked, and what its reward is.

    Attributes:
        time_step: seconds that pass where the policy waits; 0: until the next event at which a job
            that it sees fits.
        every_step: whether it is asked after every step, and not only where a job fits.
        reward: one of `REWARDS`.
        discount: of a second, in ``options``.

    Raises:
        InputError: for a value out of range.
    """

    time_step: int = 0
    every_step: bool = False
    reward: str = "at_start"
    discount: float = 0.99

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise unknown("reward", self.reward, tuple(REWARDS))
        if self.time_step < 0 or (self.every_step and not self.time_step):
            raise InputError(
                f"time_step must be 0 (until the next event) or more seconds, and 1 or more with "
                f"every_step, but {self.time_step} was given"
            )
        if not 0 < self.discount <= 1:
            raise InputError(f"a discount must be above 0 and at most 1, not {self.discount:g}")
