"""Marginal likelihoods of rows with real and categorical columns under conjugate models."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cluster_env.core.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to be clustered.

    Attributes:
        real: float64 ``(rows, real columns)``.
        categorical: int64 ``(rows, categorical columns)``, categories from 0.
        categories: how many categories each categorical column can have.
    """

    real: Floats
    categorical: NDArray[np.int64]
    categories: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.real.ndim != 2 or self.categorical.shape != (self.num_rows, len(self.categories)):
            raise InputError(
                f"a table needs as many rows of real as of categorical columns, and the number of "
                f"categories of each, but {self.real.shape}, {self.categorical.shape} and "
                f"{len(self.categories)} were given"
            )
        if not np.isfinite(self.real).all():
            raise InputError("real columns need finite numbers")
        if (self.categorical < 0).any() or (self.categorical >= self.categories).any():
            raise InputError("a category is a number from 0 to that of the column's categories - 1")

    @classmethod
    def of_real(cls, real: Floats) -> "Table":
        """Rows without categorical columns."""
        return cls(np.asarray(real, float), np.zeros((len(real), 0), np.int64))

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.real.shape[0])


@dataclass(frozen=True, eq=False)
class Evidence:
    """The model of a cluster: each column by itself, all parameters integrated out.

    A real column is normal with a normal-inverse-gamma prior (Murphy, *Conjugate Bayesian analysis
    of the Gaussian distribution*, 2007, section 6), a categorical one is multinomial with a
    Dirichlet prior, as Heller and Ghahramani (*Bayesian hierarchical clustering*, 2005, section 4)
    use them. Real columns are counted in their standard deviations from their means.

    Attributes:
        mean: of each real column, float64 ``(real columns,)``, as the next.
        scale: its standard deviation; 0 for a column that is the same in all rows. That one does
            not count, because the density of ever more equal rows in one cluster is unbounded.
        within: share of a real column's variance that is expected inside a cluster.
        categories: of each categorical column.
        shape: of the inverse gamma prior; the larger, the surer is `within`.
    """

    mean: Floats
    scale: Floats
    within: float
    categories: tuple[int, ...]
    shape: float = 2.0

    @classmethod
    def of(cls, table: Table, within: float = 0.05) -> "Evidence":
        """The model of a table's rows."""
        # Of equal numbers, the deviation from a rounded mean may be above 0.
        varies = np.ptp(table.real, axis=0) > 0
        scale = np.where(varies, table.real.std(axis=0), 0.0)
        return cls(table.real.mean(axis=0), scale, within, table.categories)

    def statistics(self, table: Table) -> Floats:
        """What the likelihood of each row depends on; that of a cluster is the sum over its rows.

        float64 ``(rows, 1 + 2 * real columns + categories)``: the count, sums, sums of squares, and
        counts of categories.
        """
        real = np.where(self.scale > 0, table.real - self.mean, 0.0)
        real /= np.where(self.scale > 0, self.scale, 1.0)
        one_hot = [
            np.eye(count)[column]
            for count, column in zip(self.categories, table.categorical.T, strict=True)
        ]
        return np.concatenate([np.ones((len(real), 1)), real, real**2, *one_hot], axis=1)

    def log_likelihood(self, statistics: Floats) -> Floats:
        """Logarithm of p(D | H1), that one cluster has generated its rows, float64 ``(...)``."""
        # Real columns first, then the counts of categories; columns are independent.
        n, num_real = statistics[..., 0], self.mean.size
        sums = statistics[..., 1 : 1 + num_real]
        squares = statistics[..., 1 + num_real : 1 + 2 * num_real]
        varies = self.scale > 0
        total = self._real(n[..., None], sums[..., varies], squares[..., varies]).sum(axis=-1)
        first = 1 + 2 * num_real
        for count in self.categories:
            prior = 1.0 / count  # all categories of a column together weigh as one row
            counts = statistics[..., first : first + count]
            total += (gammaln(counts + prior) - gammaln(prior)).sum(axis=-1) - gammaln(1.0 + n)
            first += count
        return np.asarray(total, np.float64)

    def log_predictive(self, clusters: Floats, rows: Floats) -> Floats:
        """Logarithm of how likely rows are in clusters, float64 ``(rows, clusters)``.

        The posterior predictive of a cluster, times its number of rows (Heller and Ghahramani,
        section 3.2), from the `statistics` of both.
        """
        joined = self.log_likelihood(clusters + rows[:, None])
        return np.asarray(joined - self.log_likelihood(clusters) + np.log(clusters[:, 0]))

    def _real(self, n: Floats, sums: Floats, squares: Floats) -> Floats:
        """Of each real column, float64 ``(..., real columns)`` (Murphy, equations 85 to 95)."""
        # The parameters of the prior, then those of the posterior.
        a, b = self.shape, self.shape * self.within
        # So that means of clusters vary as much as the column does beside what is inside of them.
        trust = self.within / max(1.0 - self.within, 1e-3)
        trust_n, a_n = trust + n, a + n / 2
        b_n = b + 0.5 * (squares - sums**2 / trust_n)
        return np.asarray(
            gammaln(a_n)
            - gammaln(a)
            + a * np.log(b)
            - a_n * np.log(b_n)
            + 0.5 * (np.log(trust) - np.log(trust_n) - n * np.log(2 * np.pi)),
            np.float64,
        )
