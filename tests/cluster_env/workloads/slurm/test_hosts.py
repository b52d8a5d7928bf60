"""Lists of hosts."""

import pytest

from cluster_env.workloads.slurm.hosts import host_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("login", ["login"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("gpu[08-10,7],a,b2", ["gpu08", "gpu09", "gpu10", "gpu7", "a", "b2"]),
        ("r[1-2]n[1-2].hpc", ["r1n1.hpc", "r1n2.hpc", "r2n1.hpc", "r2n2.hpc"]),
    ],
)
def test_lists_of_hosts_are_read(text, names):
    assert list(host_names(text)) == names


@pytest.mark.parametrize(
    "text", ["n[1-", "n]", "a,,b", "n[x]", "n[1-9999999]", "n[1-9]" * 9, "n[]", "n[3-1-2]"]
)
def test_what_is_no_list_of_hosts_is_refused(text):
    with pytest.raises(ValueError, match="hosts"):
        host_names(text)
