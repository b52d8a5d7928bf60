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
_SEED = 20240817  # of what the randomised variant draws


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
    """

    children: NDArray[np.int64]
    log_odds: Floats
    log_evidence: float
    statistics: Floats
    evidence: Evidence

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
        clusters, stack = [], [self.root]
        while stack:
            node = stack.pop()
            if node < self.num_rows or self.log_odds[node - self.num_rows] >= 0:
                clusters.append(node)
            else:
                stack.extend(self.children[node - self.num_rows].tolist()[::-1])
        return clusters


def cluster(
    table: Table, *, alpha: float = 1.0, within: float | None = None, exact: int = EXACT
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

    Raises:
        InputError: without rows, or with an `alpha`, `within` or `exact` that cannot be.
    """
    if not table.num_rows or not alpha > 0 or exact < 2 or not (within is None or 0 < within < 1):
        raise InputError(
            f"clustering needs a row or more, alpha above 0, exact of 2 or more and within between "
            f"0 and 1, but {table.num_rows}, {alpha:g}, {exact} and {within} were given"
        )
    rng = np.random.default_rng(_SEED)
    evidence = Evidence.of(table, within or WITHIN[0])
    rows = evidence.statistics(table)  # the same for any share of the variance
    drawn = np.sort(rng.choice(table.num_rows, min(table.num_rows, exact), replace=False))
    if within is None:
        evidence = max(
            (replace(evidence, within=share) for share in WITHIN),
            key=lambda model: _cluster_exactly(rows[drawn], model, alpha).log_evidence,
        )
    builder = _Builder(rows, evidence, alpha, exact, rng)
    builder.add(np.arange(table.num_rows))
    return builder.tree()


class _Builder:
    """A dendrogram under way; of each node, log d_k and log p(D_k | T_k) beside its statistics."""

    def __init__(
        self, rows: Floats, evidence: Evidence, alpha: float, exact: int, rng: np.random.Generator
    ) -> None:
        n = len(rows)
        self._rows, self._evidence, self._alpha = rows, evidence, alpha
        self._exact, self._rng = exact, rng
        self._children = np.zeros((n - 1, 2), np.int64)
        self._odds = np.zeros(n - 1)
        self._statistics = np.concatenate([rows, np.zeros((n - 1, rows.shape[1]))])
        # Leaves have d = alpha, and the evidence of a cluster of one row (figure 3).
        self._log_d = np.full(2 * n - 1, np.log(alpha))
        self._log_tree = np.zeros(2 * n - 1)
        self._log_tree[:n] = evidence.log_likelihood(rows)
        self._next = n

    def tree(self) -> Dendrogram:
        """What has been built."""
        return Dendrogram(
            children=self._children,
            log_odds=self._odds,
            log_evidence=float(self._log_tree[-1]),
            statistics=self._statistics,
            evidence=self._evidence,
        )

    def add(self, rows: NDArray[np.int64]) -> int:
        """Builds the tree of some rows; returns its root."""
        if rows.size <= self._exact:
            return self._add_exactly(rows)
        # Cluster a drawn part, whose first split is that of all rows.
        drawn = self._rng.choice(rows.size, self._exact, replace=False)
        part = _cluster_exactly(self._rows[rows[drawn]], self._evidence, self._alpha)
        if part.log_odds[-1] >= 0:
            return self._add_as_one(rows)
        sides = part.children[-1]
        likely = self._evidence.log_predictive(part.statistics[sides], self._rows[rows])
        right = likely[:, 1] > likely[:, 0]
        # Drawn rows stay on their sides, so that none is empty.
        right[drawn[list(part.below(int(sides[0])))]] = False
        right[drawn[list(part.below(int(sides[1])))]] = True
        return self.join(self.add(rows[~right]), self.add(rows[right]))

    def _add_exactly(self, rows: NDArray[np.int64]) -> int:
        part = _cluster_exactly(self._rows[rows], self._evidence, self._alpha)
        node = np.concatenate([rows, np.zeros(rows.size - 1, np.int64)])
        for k, (left, right) in enumerate(part.children):
            node[rows.size + k] = self.join(int(node[left]), int(node[right]))
        return int(node[-1])

    def _add_as_one(self, rows: NDArray[np.int64]) -> int:
        """A balanced tree: neighbors are joined, and what comes of it, until one is left."""
        nodes = rows.tolist()
        while len(nodes) > 1:
            pairs = zip(nodes[0::2], nodes[1::2], strict=False)
            nodes = [self.join(one, two) for one, two in pairs] + nodes[len(nodes) // 2 * 2 :]
        return int(nodes[0])

    def join(self, left: int, right: int) -> int:
        """Makes a node of two (equations 1 and 2, figure 3); returns it."""
        node, merge = self._next, self._next - len(self._rows)
        self._next += 1
        odds, log_d, log_tree = (terms[0] for terms in self.terms(left, np.array([right])))
        self._children[merge], self._odds[merge] = (left, right), odds
        self._statistics[node] = self._statistics[left] + self._statistics[right]
        self._log_d[node], self._log_tree[node] = log_d, log_tree
        return node

    def terms(self, node: int, others: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Log odds, log d_k and log p(D_k | T_k) of joining a node with each of some others."""
        statistics = self._statistics[node] + self._statistics[others]
        # d_k = alpha Gamma(n_k) + d_left d_right: the weights of one cluster and of two trees.
        merged = np.log(self._alpha) + gammaln(statistics[:, 0])
        apart = self._log_d[node] + self._log_d[others]
        log_d = np.logaddexp(merged, apart)
        # The same weights times the evidence of each hypothesis.
        merged += self._evidence.log_likelihood(statistics)
        apart += self._log_tree[node] + self._log_tree[others]
        return merged - apart, log_d, np.logaddexp(merged, apart) - log_d


def _cluster_exactly(rows: Floats, evidence: Evidence, alpha: float) -> Dendrogram:
    """Joins the two clusters with the highest posterior until one is left (figure 3)."""
    n = len(rows)
    builder = _Builder(rows, evidence, alpha, n, np.random.default_rng(0))
    node = np.arange(n)  # of each place; -1 where it was joined into another place
    # Odds of all pairs, below the diagonal alone; those of a place that is gone are -inf.
    odds = np.full((n, n), -np.inf)
    for place in range(1, n):
        odds[place, :place] = builder.terms(place, node[:place])[0]
    for _ in range(n - 1):
        row, column = (int(place) for place in np.unravel_index(odds.argmax(), odds.shape))
        node[column] = builder.join(int(node[column]), int(node[row]))
        node[row], odds[row], odds[:, row] = -1, -np.inf, -np.inf
        # Only the odds of the new node with the others change.
        others = np.flatnonzero((node >= 0) & (node != node[column]))
        changed, *_ = builder.terms(int(node[column]), node[others])
        before = others < column
        odds[column, others[before]] = changed[before]
        odds[others[~before], column] = changed[~before]
    return builder.tree()
