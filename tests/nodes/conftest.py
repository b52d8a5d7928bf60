"""What tests of separate nodes share; each module starts a cluster of its own."""

from collections.abc import Iterator

import pytest

from tests.nodes.separate_cluster import SeparateCluster


@pytest.fixture
def cluster(started_cluster: SeparateCluster) -> Iterator[SeparateCluster]:
    """All nodes, whatever the test before has lost."""
    started_cluster.make_whole()
    yield started_cluster
    print(started_cluster.logs())  # shown where the test has failed
