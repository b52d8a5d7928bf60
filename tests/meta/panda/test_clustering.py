"""Bayesian hierarchical clustering against brute force and known clusters."""

from itertools import combinations, product
from math import lgamma

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from cluster_env.core.errors import InputError
from meta.panda.clustering import Dendrogram, cluster
from meta.panda.evidence import Evidence, Table


def _clusters(sizes: tuple[int, ...], seed: int) -> tuple[Table, np.ndarray]:
    """Clusters that lie six deviations and more apart, and prefer a category each."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    real = 8.0 * np.stack([label % 3, label // 3], axis=1) + rng.normal(size=(label.size, 2))
    color = np.where(rng.random(label.size) < 0.9, label % 4, rng.integers(0, 4, label.size))
    return Table(real * [1.0, 50.0], color[:, None], (4,)), label


def labels_of(tree: Dendrogram) -> np.ndarray:
    """Cluster of each row, numbered as `cut` does."""
    labels = np.empty(tree.num_rows, int)
    for label, node in enumerate(tree.cut()):
        labels[list(tree.below(node))] = label
    return labels


@pytest.mark.parametrize("sizes", [(40, 40, 40), (60, 30, 20, 15, 10)])
def test_clusters_are_found_without_their_number(sizes: tuple[int, ...]) -> None:
    table, label = _clusters(sizes, seed=len(sizes))
    tree = cluster(table)
    assert len(tree.cut()) == len(sizes)
    assert adjusted_rand_score(label, labels_of(tree)) >= 0.95
    new, truth = _clusters((30,) * len(sizes), seed=9)
    clusters, rows = tree.statistics[tree.cut()], tree.evidence.statistics(new)
    likeliest = tree.evidence.log_predictive(clusters, rows).argmax(axis=1)
    assert adjusted_rand_score(truth, likeliest) >= 0.95


def test_the_randomised_variant_finds_the_same_clusters() -> None:
    table, label = _clusters((300, 200, 100), seed=5)
    tree = cluster(table, exact=60, within=0.03)
    assert adjusted_rand_score(label, labels_of(tree)) >= 0.95
    assert sorted(tree.below(tree.root)) == list(range(600))
    assert np.allclose(tree.statistics[tree.root], tree.statistics[:600].sum(axis=0))


def _likelihoods(
    table: Table, monkeypatch: pytest.MonkeyPatch, **options: float
) -> tuple[int, Dendrogram]:
    """How many clusters' likelihoods a clustering works out, which is nearly all that it does."""
    plain, count = Evidence.log_likelihood, 0

    def counted(self: Evidence, statistics: np.ndarray) -> np.ndarray:
        nonlocal count
        count += statistics[..., 0].size
        return plain(self, statistics)

    with monkeypatch.context() as patch:
        patch.setattr(Evidence, "log_likelihood", counted)
        tree = cluster(table, within=0.03, **options)
    return count, tree


def test_work_grows_with_the_rows_and_not_with_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2,500 and 10,000 rows in five clusters; the exact clustering of 40 and 160 beside it."""
    found = {}
    for n in (2500, 10_000):
        table, label = _clusters((n // 5,) * 5, seed=2)
        found[n], tree = _likelihoods(table, monkeypatch, exact=64)
        assert adjusted_rand_score(label, labels_of(tree)) >= 0.95
    exact = [_likelihoods(_clusters((n,), seed=1)[0], monkeypatch)[0] for n in (40, 160)]
    assert exact[1] > 12 * exact[0]  # 16 times for four times the rows
    assert found[10_000] < 4.8 * found[2500]  # n log n: 4 x ln(10,000) / ln(2,500)
    assert found[10_000] < 20 * 10_000


def test_one_cluster_is_not_split() -> None:
    table = Table.of_real(np.random.default_rng(3).normal(size=(50, 2)))
    assert len(cluster(table, within=0.3).cut()) == 1


def test_a_column_that_never_varies_does_not_count() -> None:
    """However many rows agree in it, they are no more one cluster."""
    table, label = _clusters((40, 40, 40), seed=3)
    same = np.full((table.num_rows, 1), 0.1)
    wider = Table(np.hstack([table.real, same]), table.categorical, table.categories)
    one, other = cluster(table, within=0.03), cluster(wider, within=0.03)
    assert (one.children == other.children).all()
    assert np.allclose(one.log_odds, other.log_odds)
    assert adjusted_rand_score(label, labels_of(other)) >= 0.95


def _partitions(tree: Dendrogram, node: int) -> list[list[tuple[int, ...]]]:
    """All partitions of the rows below a node that agree with the tree."""
    if node < tree.num_rows:
        return [[(node,)]]
    left, right = (_partitions(tree, int(child)) for child in tree.children[node - tree.num_rows])
    apart = [one + two for one, two in product(left, right)]
    return [[tuple(sorted(tree.below(node)))], *apart]


@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_evidence_of_the_tree_is_the_sum_over_all_partitions_that_agree_with_it(
    alpha: float,
) -> None:
    rng = np.random.default_rng(1)
    table = Table(rng.normal(size=(6, 2)), rng.integers(0, 3, (6, 1)), (3,))
    tree = cluster(table, alpha=alpha, within=0.1)
    rows = tree.evidence.statistics(table)
    priors, joint, together = [], [], []
    for partition in _partitions(tree, tree.root):
        prior = sum(np.log(alpha) + lgamma(len(part)) for part in partition)
        likely = sum(
            tree.evidence.log_likelihood(rows[list(part)].sum(axis=0)) for part in partition
        )
        priors.append(prior)
        joint.append(prior + likely)
        together.append(len(partition) == 1)
    assert tree.log_evidence == pytest.approx(logsumexp(joint) - logsumexp(priors), abs=1e-9)
    posterior = np.exp(logsumexp(np.array(joint)[together]) - logsumexp(joint))
    assert tree.posterior[-1] == pytest.approx(posterior, abs=1e-9)


def test_the_pair_that_most_likely_belongs_together_is_joined_first() -> None:
    tree = cluster(Table.of_real(np.array([[0.0], [5.0], [5.1], [2.0], [9.0]])), within=0.1)
    alone, model = tree.statistics[:5], tree.evidence
    gain = {
        pair: model.log_likelihood(alone[list(pair)].sum(axis=0))
        - model.log_likelihood(alone[list(pair)]).sum()
        for pair in combinations(range(5), 2)
    }
    assert tuple(sorted(tree.children[0].tolist())) == max(gain, key=gain.__getitem__) == (1, 2)


def test_marginal_likelihoods_are_products_of_predictive_ones() -> None:
    """Row by row: a real column is a Student's t, a category its share of counts so far."""
    rng = np.random.default_rng(4)
    table = Table(rng.normal(3.0, 2.0, (5, 1)), rng.integers(0, 3, (5, 1)), (3,))
    model = Evidence.of(table, within=0.2)
    a, b, trust, centre = model.shape, model.shape * 0.2, 0.2 / 0.8, 0.0
    counts, expected = np.full(3, 1 / 3), 0.0
    for x, category in zip(
        (table.real[:, 0] - model.mean) / model.scale, table.categorical[:, 0], strict=True
    ):
        spread = np.sqrt(b * (trust + 1) / (a * trust))
        expected += stats.t.logpdf(x, 2 * a, centre, spread) + np.log(
            counts[category] / counts.sum()
        )
        b += trust * (x - centre) ** 2 / (2 * (trust + 1))
        centre, trust, a = (trust * centre + x) / (trust + 1), trust + 1, a + 0.5
        counts[category] += 1
    found = model.log_likelihood(model.statistics(table).sum(axis=0))
    assert found == pytest.approx(expected, abs=1e-10)


def test_wrong_input_is_one_sentence() -> None:
    with pytest.raises(InputError, match="needs a row or more"):
        cluster(Table.of_real(np.zeros((0, 2))))
    with pytest.raises(InputError, match="a category is a number from 0"):
        Table(np.zeros((1, 1)), np.array([[2]]), (2,))
