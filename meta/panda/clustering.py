"""Bayesian hierarchical clustering (Heller and Ghahramani, 2005), exact and randomised."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from cluster_env.core.errors import InputError
from meta.panda.evidence import Evidence, Floats, Table

EXACT = 256
"""Rows that are clustered exactly; of more, as many are drawn to find each split."""
WITHIN = (0.3, 0.1, 0.03, 0.01, 0.003)
"""Shares of the variance inside a cluster that are tried, see `Evidence`."""
_DRAWS = 20240817  # of the randomised variant, where nobody gives a generator


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """A binary tree over n rows; nodes below n are its leaves, n + k is the k-th merge.

    Attributes:
        children: int64 ``(n - 1, 2)``, what each merge joins.
        log_odds: float64 ``(n - 1,)``, of the hypothesis that all rows below a merge are one
            cluster, against all other partitions that agree with the tree; r_k is its logistic.
        log_evidence: logarithm of p(D | T) at the root.
        statistics: float64 ``(2 n - 1, size)``, of the rows below each node, see `Evidence`.
        evidence: the model of a cluster.
        alpha: concentration of the Dirichlet process.
    """

    children: NDArray[np.int64]
    log_odds: Floats
    log_evidence: float
    statistics: Floats
    evidence: Evidence
    alpha: float

    @property
    def num_rows(self) -> int:
        """Number of leaves."""
        return len(self.children) + 1

    @property
    def root(self) -> int:
        """The node above all others."""
        return 2 * self.num_rows - 2

    @property
    def posterior(self) -> Floats:
        """The paper's r_k of each merge (equation 2), float64 ``(n - 1,)``."""
        return np.asarray(expit(self.log_odds), np.float64)

    def below(self, node: int) -> Iterator[int]:
        """The rows below a node."""
        stack = [node]
        while stack:
            top = stack.pop()
            if top < self.num_rows:
                yield top
            else:
                stack.extend(self.children[top - self.num_rows].tolist()[::-1])

    def cut(self) -> list[int]:
        """The nodes whose rows are the clusters, from left to right: highest with r_k >= 0.5."""
        found, stack = [], [self.root]
        while stack:
            node = stack.pop()
            if node < self.num_rows or self.log_odds[node - self.num_rows] >= 0:
                found.append(node)
            else:
                stack.extend(self.children[node - self.num_rows].tolist()[::-1])
        return found

    def labels(self) -> NDArray[np.int64]:
        """Cluster of each row, int64 ``(n,)``, numbered as `cut` does."""
        found = np.empty(self.num_rows, np.int64)
        for label, node in enumerate(self.cut()):
            found[list(self.below(node))] = label
        return found

    def log_predictive(self, table: Table, nodes: list[int]) -> Floats:
        """Logarithm of how likely a new row is in each cluster, float64 ``(rows, nodes)``.

        The posterior predictive of the cluster, times its number of rows (section 3.2).
        """
        old, new = self.statistics[nodes], self.evidence.statistics(table)
        joined = self.evidence.log_likelihood(old[None] + new[:, None])
        return np.asarray(joined - self.evidence.log_likelihood(old) + np.log(old[:, 0]))

    def assign(self, table: Table) -> NDArray[np.int64]:
        """The most likely cluster of new rows, int64 ``(rows,)``, numbered as `cut` does."""
        return np.asarray(self.log_predictive(table, self.cut()).argmax(axis=1), np.int64)


def cluster(
    table: Table,
    *,
    alpha: float = 1.0,
    within: float | None = None,
    exact: int = EXACT,
    rng: np.random.Generator | None = None,
) -> Dendrogram:
    """Clusters rows; how many clusters there are comes out of it (`Dendrogram.cut`).

    More rows than `exact` are clustered as the authors' randomised variant does (*Randomized
    algorithms for fast Bayesian hierarchical clustering*, 2005): the split of a drawn part says on
    which side every other row is, and both sides are clustered in turn. Where the drawn part is one
    cluster all rows are taken for one, so what is rarer than one in `exact` may be overlooked.

    Args:
        table: at least one row.
        alpha: concentration of the Dirichlet process; the larger, the more clusters.
        within: see `Evidence`; None for the likeliest of `WITHIN`, as the authors choose
            hyperparameters.
        exact: rows that are clustered exactly, at least 2.
        rng: draws the parts; None for the same ones each time.

    Raises:
        InputError: without rows, or with an `alpha`, `within` or `exact` that cannot be.
    """
    if not table.num_rows or not alpha > 0 or exact < 2 or not (within is None or 0 < within < 1):
        raise InputError(
            f"clustering needs a row or more, alpha above 0, exact of 2 or more and within between "
            f"0 and 1, but {table.num_rows}, {alpha:g}, {exact} and {within} were given"
        )
    rng = np.random.default_rng(_DRAWS) if rng is None else rng
    evidence = Evidence.of(table, within or WITHIN[0])
    drawn = np.sort(rng.choice(table.num_rows, min(table.num_rows, exact), replace=False))
    if within is None:
        evidence = max(
            (replace(evidence, within=share) for share in WITHIN),
            key=lambda one: _exact(one.statistics(_rows(table, drawn)), one, alpha).log_evidence,
        )
    builder = _Builder(evidence.statistics(table), evidence, alpha, exact, rng)
    builder.add(np.arange(table.num_rows))
    return builder.tree()


class _Builder:
    """A dendrogram under way; of each node, log d_k and log p(D_k | T_k) beside its statistics."""

    def __init__(
        self,
        rows: Floats,
        evidence: Evidence,
        alpha: float,
        exact: int,
        rng: np.random.Generator,
    ) -> None:
        n = len(rows)
        self._rows, self._evidence, self._alpha = rows, evidence, alpha
        self._exact, self._rng = exact, rng
        self._children = np.zeros((n - 1, 2), np.int64)
        self._odds = np.zeros(n - 1)
        self._statistics = np.concatenate([rows, np.zeros((n - 1, rows.shape[1]))])
        self._log_d = np.full(2 * n - 1, np.log(alpha))
        self._log_tree = np.zeros(2 * n - 1)
        self._log_tree[:n] = evidence.log_likelihood(rows)
        self._next = n

    def tree(self) -> Dendrogram:
        """What has been built."""
        return Dendrogram(
            *(self._children, self._odds, float(self._log_tree[-1])),
            *(self._statistics, self._evidence, self._alpha),
        )

    def add(self, which: NDArray[np.int64]) -> int:
        """Builds the tree of some rows; returns its root."""
        if which.size <= self._exact:
            return self._add_exactly(which)
        drawn = self._rng.choice(which.size, self._exact, replace=False)
        part = _exact(self._rows[which[drawn]], self._evidence, self._alpha)
        if part.log_odds[-1] >= 0:
            return self._add_as_one(which)
        sides = part.children[-1]
        old = part.statistics[sides]
        joined = self._evidence.log_likelihood(old + self._rows[which][:, None])
        likely = joined - self._evidence.log_likelihood(old) + np.log(old[:, 0])
        right = likely[:, 1] > likely[:, 0]
        right[drawn[list(part.below(int(sides[0])))]] = False  # so that no side is empty
        right[drawn[list(part.below(int(sides[1])))]] = True
        return self.join(self.add(which[~right]), self.add(which[right]))

    def _add_exactly(self, which: NDArray[np.int64]) -> int:
        part = _exact(self._rows[which], self._evidence, self._alpha)
        node = np.concatenate([which, np.zeros(which.size - 1, np.int64)])
        for k, (left, right) in enumerate(part.children):
            node[which.size + k] = self.join(int(node[left]), int(node[right]))
        return int(node[-1])

    def _add_as_one(self, nodes: NDArray[np.int64]) -> int:
        """A balanced tree: neighbors are joined, and what comes of it, until one is left."""
        left = nodes.tolist()
        while len(left) > 1:
            pairs = zip(left[0::2], left[1::2], strict=False)
            left = [self.join(one, two) for one, two in pairs] + left[len(left) // 2 * 2 :]
        return int(left[0])

    def odds(self, node: int, others: NDArray[np.int64]) -> Floats:
        """Log odds of joining a node with each of some others, float64 ``(others,)``."""
        return self._terms(node, others)[0]

    def join(self, left: int, right: int) -> int:
        """Makes a node of two (equations 1 and 2, figure 3); returns it."""
        node, n = self._next, len(self._rows)
        self._next += 1
        odds, log_d, log_tree = self._terms(left, np.array([right]))
        self._children[node - n] = left, right
        self._statistics[node] = self._statistics[left] + self._statistics[right]
        self._odds[node - n], self._log_d[node], self._log_tree[node] = (
            odds[0],
            log_d[0],
            log_tree[0],
        )
        return node

    def _terms(self, node: int, others: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Log odds, log d_k and log p(D_k | T_k) of joining a node with others."""
        statistics = self._statistics[node] + self._statistics[others]
        merged = np.log(self._alpha) + gammaln(statistics[:, 0])
        apart = self._log_d[node] + self._log_d[others]
        log_d = np.logaddexp(merged, apart)
        merged += self._evidence.log_likelihood(statistics)
        apart += self._log_tree[node] + self._log_tree[others]
        return merged - apart, log_d, np.logaddexp(merged, apart) - log_d


def _exact(rows: Floats, evidence: Evidence, alpha: float) -> Dendrogram:
    """Joins the two clusters with the highest posterior until one is left (figure 3).

    Args:
        rows: statistics of each, float64 ``(n, size)``.
        evidence: the model.
        alpha: concentration.
    """
    n = len(rows)
    builder = _Builder(rows, evidence, alpha, n, np.random.default_rng(0))
    node = np.arange(n)  # of each place; -1 where it was joined into another place
    odds = np.full((n, n), -np.inf)
    for place in range(1, n):
        odds[place, :place] = builder.odds(place, node[:place])
    for _ in range(n - 1):
        row, column = (int(place) for place in np.unravel_index(odds.argmax(), odds.shape))
        node[column] = builder.join(int(node[column]), int(node[row]))
        node[row], odds[row], odds[:, row] = -1, -np.inf, -np.inf
        others = np.flatnonzero((node >= 0) & (node != node[column]))
        found = builder.odds(int(node[column]), node[others])
        before = others < column
        odds[column, others[before]] = found[before]
        odds[others[~before], column] = found[~before]
    return builder.tree()


def _rows(table: Table, which: NDArray[np.int64]) -> Table:
    return Table(table.real[which], table.categorical[which], table.categories)
