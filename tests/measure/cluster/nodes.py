"""Real Ray clusters of several nodes, all on this machine."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CODE = (str(Path(__file__).with_name("simulated.py")),)
OPTIONS = {"node_ip_address": "127.0.0.1", "include_dashboard": False}


@contextmanager
def cluster(nodes: int = 1, cpus: int = 2, token: bool = True, **options: Any) -> Iterator[Any]:
    """A cluster of ``nodes`` that lend ``cpus`` each, the head too; it may ask for a ``token``.

    ``options`` are more of those with which the head is started.
    """
    before = dict(os.environ)
    os.environ |= {
        "RAY_AUTH_MODE": "token" if token else "disabled",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
    }
    from ray._raylet import AuthenticationTokenLoader, Config
    from ray.cluster_utils import Cluster

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, **OPTIONS, **options})
    try:
        for _ in range(nodes - 1):
            made.add_node(num_cpus=cpus, **OPTIONS)
        yield made
    finally:
        made.shutdown()
        os.environ.clear()
        os.environ.update(before)


def members_on(executor: Any, node: Any) -> list[Any]:
    """The workers that a driver has, or wants, on a node of :func:`cluster`."""
    with executor._outcomes.changed:
        members = list(executor._dispatcher.fleet.members())
    return [member for member in members if member.plan.node == node.node_id]
