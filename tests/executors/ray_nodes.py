"""A Ray cluster on this machine, for tests and measurements that kill parts of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ray.cluster_utils import Cluster


@contextmanager
def two_nodes() -> Iterator[Cluster]:
    """Run a head without processors and two nodes with one each, and join them."""
    import ray  # noqa: PLC0415 - it takes a second, and an extra
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - as above

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
