"""Jobs under limits on nodes, on three nodes of 64 processors: when they start, as Slurm has it."""

from typing import NamedTuple


class Job(NamedTuple):
    """A job that runs for 100 seconds.

    Attributes:
        qos: ``one`` (GrpTRES=node=1), ``two`` (GrpTRES=node=2), ``per`` (MaxTRESPU=node=1), or
            ``normal``, which has no limit.
        node: the one that its partition has; 0: all three.
        processors: that it asks for.
        nodes: exact number; 0: as many as it takes.
        exclusive: whether it has its nodes for itself.
    """

    qos: str
    node: int
    processors: int
    nodes: int = 0
    exclusive: bool = False


class Case(NamedTuple):
    """Jobs that one user submits second by second.

    Attributes:
        what: is shown.
        jobs: in their order.
        starts: seconds after the first one.
    """

    what: str
    jobs: tuple[Job, ...]
    starts: tuple[int, ...]

    def __str__(self) -> str:
        return self.what


_PARTLY_FULL = (Job("normal", 1, 40), Job("normal", 2, 34), Job("normal", 3, 24))

NODE_LIMITS = (
    Case("one_node_for_three", (Job("one", 0, 1),) * 3, (0, 1, 2)),
    Case("another_node", (Job("one", 3, 1), Job("one", 1, 1)), (0, 100)),
    # Nodes are chosen without a look at the limit: the fullest one, n1, where job 2 may not run.
    Case(
        "the_node_that_is_chosen",
        (Job("normal", 1, 10), Job("one", 3, 1), Job("one", 0, 2)),
        (0, 1, 100),
    ),
    Case(
        "no_room_but_beside_its_own",
        (Job("normal", 1, 40), Job("one", 3, 1), Job("one", 0, 30)),
        (0, 1, 2),
    ),
    Case(
        "no_room_beside_its_own",
        (Job("one", 3, 4), Job("normal", 3, 60), Job("one", 0, 2)),
        (0, 1, 100),
    ),
    Case("per_user", (Job("per", 3, 1), Job("per", 0, 1), Job("per", 2, 1)), (0, 1, 101)),
    # n1 and n2 beside n3 are one too many until nobody is on n3.
    Case("two_more", (Job("two", 3, 1), Job("two", 0, 2, nodes=2), Job("two", 0, 1)), (0, 102, 2)),
    Case("one_more", (Job("two", 2, 1), Job("two", 0, 80)), (0, 1)),
    Case("exclusive", (Job("one", 0, 1, exclusive=True), Job("one", 0, 1)), (0, 100)),
    # A job that takes as many nodes as it needs takes no more than its limit lets: n1 and n3.
    Case("no_third_node", (*_PARTLY_FULL, Job("two", 0, 64)), (0, 1, 2, 3)),
    Case("no_second_node", (*_PARTLY_FULL, Job("one", 0, 64)), (0, 1, 2, 100)),
)
