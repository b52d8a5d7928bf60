"""Predicted run times in plain Python, from all jobs that have ended: what kernels must equal."""

import math

from cluster_env.core.jobs import JobSet


class PlainRunTimes:
    """Predicts for the jobs of a jobset, whose starts somebody else fills in."""

    def __init__(self, jobset: JobSet, model: str) -> None:
        count, self.model = jobset.num_jobs, model
        self.run, self.limit = jobset.duration.tolist(), jobset.attributes["estimate"].tolist()
        user = jobset.attributes["user"].tolist() if "user" in jobset.attributes else [0] * count
        size = jobset.demand[:, 0].tolist()
        self.groups = [((), (user[j],), (user[j], self.limit[j], size[j])) for j in range(count)]

    def predict(self, job: int, ends: list[tuple[int, int]]) -> tuple[int, int]:
        """Seconds for the order, and for reservations, from the ends and numbers of other jobs."""
        ended, limit = [other for _, other in sorted(ends)], self.limit[job]
        if self.model == "recent":
            last = [self.run[j] for j in ended if self.groups[j][1] == self.groups[job][1]][-2:]
            seconds = min(math.ceil(sum(last) / 2), limit) if len(last) == 2 else limit
            return seconds, seconds
        expected = 0.0
        for k, group in enumerate(self.groups[job]):
            mean, count = 0.0, 0
            for j in ended:
                if self.groups[j][k] == group:
                    count += 1
                    mean += (self.ratio(j) - mean) / count
            weight = min(count, 20)
            expected = (weight * mean + 2 * expected) / (weight + 2)
        return min(max(math.ceil(limit * math.exp(expected / 2)), 1), limit), limit

    def ratio(self, job: int) -> float:
        return min(math.log(max(self.run[job], 10)) - math.log(self.limit[job]), 0.0)
