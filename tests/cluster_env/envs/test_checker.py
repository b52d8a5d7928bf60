"""The checker finds what is broken on purpose."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from cluster_env.envs import CheckError, ClusterEnv, check_cluster_env
from cluster_env.objectives import mixture
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from tests.cluster_env.worlds.step_rules import STEP_RULES


class SpoilsTheMask(ClusterEnv):
    place = 0
    value = 0

    def _look(self) -> tuple[Any, dict[str, Any]]:
        observation, info = super()._look()
        info["action_mask"][self.place] = self.value
        return observation, info

    def action_masks(self) -> Any:
        mask = super().action_masks()
        mask[self.place] = self.value
        return mask


class ForbidsAPossibleSlot(SpoilsTheMask):
    pass


class AllowsAnEmptySlot(SpoilsTheMask):
    place, value = -2, 1


class ForbidsVoid(SpoilsTheMask):
    place = -1


class HasASecondMask(ClusterEnv):
    def action_masks(self) -> Any:
        return np.ones_like(super().action_masks())


class PaysForBookings(ClusterEnv):
    def step(self, action: Any) -> Any:
        time = self.simulator.time[0]
        observation, reward, terminated, truncated, info = super().step(action)
        bonus = 1.0 if info["time"] == time else 0.0
        return observation, reward + bonus, terminated, truncated, info


class ForgetsAPartOfTheReward(ClusterEnv):
    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, round(reward, 1), *rest


class StopsEarly(ClusterEnv):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or info["time"] == 30, truncated, info


class Truncates(ClusterEnv):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated or info["time"] == 30, info


class GoesOnForever(ClusterEnv):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        info["time"] += 10**6
        return observation, reward, terminated, truncated, info


class TurnsTheClockBack(ClusterEnv):
    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        info["time"] = max(info["time"] % 20, 0)
        return *rest, info


class PaysNonsense(ClusterEnv):
    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, reward if reward > -3 else -np.inf, *rest


class ShowsNoise(ClusterEnv):
    def _look(self) -> tuple[Any, dict[str, Any]]:
        observation, info = super()._look()
        observation[0, 0] = np.random.default_rng().integers(2)
        return observation, info


class LeavesTheSpace(ClusterEnv):
    def _look(self) -> tuple[Any, dict[str, Any]]:
        observation, info = super()._look()
        return observation + np.uint8(1), info


class OverbooksTheCluster(ClusterEnv):
    def step(self, action: Any) -> Any:
        result = super().step(action)
        self.simulator.states[0, 0] += 1
        return result


class StartsJobsAnew(ClusterEnv):
    def step(self, action: Any) -> Any:
        result = super().step(action)
        start = self.simulator.state.start[0]
        running = np.flatnonzero((start >= 0) & (start < self.simulator.time[0]))
        start[running[:1]] += 1
        return result


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (ForbidsAPossibleSlot, "the mask forbids a slot that books a job"),
        (AllowsAnEmptySlot, "the mask allows a slot that books nothing"),
        (ForbidsVoid, "the mask forbids void"),
        (PaysForBookings, "a booking has the reward 1.0"),
        (ShowsNoise, "the same seed and actions give something else"),
        (LeavesTheSpace, "outside the observation space"),
        (OverbooksTheCluster, "units"),
    ],
)
def test_a_broken_promise_is_found(broken: type[ClusterEnv], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check_cluster_env(broken(mask="placeable"), step_rule=STEP_RULES["deeprm"])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (HasASecondMask, r"action_masks\(\) is not the one in the info"),
        (ForgetsAPartOfTheReward, "the schedule is worth"),
        (StopsEarly, "never finishes though its episode is over"),
        (Truncates, "truncated before max_time"),
        (GoesOnForever, "max_time is ignored"),
        (TurnsTheClockBack, "the clock goes back"),
        (PaysNonsense, "the reward is -inf"),
        (StartsJobsAnew, "booked anew"),
    ],
)
def test_what_holds_in_every_world_needs_no_rule_of_steps(
    broken: type[ClusterEnv], message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        check_cluster_env(broken())


@pytest.mark.parametrize("broken", [ForbidsAPossibleSlot, AllowsAnEmptySlot])
def test_a_broken_start_now_mask_is_found(broken: type[ClusterEnv]) -> None:
    with pytest.raises(CheckError, match="mask"):
        check_cluster_env(broken(mask="start_now"), step_rule=STEP_RULES["deeprm"])


def test_only_cluster_environments_are_checked() -> None:
    with pytest.raises(CheckError, match="a ClusterEnv is expected"):
        check_cluster_env(gymnasium.make("CartPole-v1"))


def test_other_clusters_and_objectives_pass() -> None:
    check_cluster_env(
        ClusterEnv(
            world=DeepRM(
                Cluster(capacity=(7, 12, 5), horizon=25, num_slots=4, backlog_view=3), max_time=400
            ),
            workload={"load": 0.9, "window": 30},
            objective=mixture({"slowdown": 0.5, "utilization": 2.0, "makespan": 0.1}),
            observation="compact",
        ),
        seed=2,
        step_rule=STEP_RULES["deeprm"],
    )
