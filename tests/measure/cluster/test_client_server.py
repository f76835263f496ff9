"""Clusters that are reached through Ray's client server, ``ray://host:port``."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest

pytest.importorskip("ray", reason="needs the extra ray")
pytest.importorskip("grpc", reason="needs the extra ray")

from tests.measure.cluster.nodes import CODE, cluster
from tests.measure.cluster.simulated import HOST_SERVICES, candidate, latency
from tilewright.measure.cluster.driver.dispatcher import LostClusterError
from tilewright.measure.cluster.driver_status import drivers_at
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.testing.executor import collect, submit
from tilewright.spaces.errors import InputError

pytestmark = pytest.mark.slow


@contextmanager
def served(token: bool = True) -> Iterator[tuple[str, int]]:
    """A cluster's address for clients, and the process of that server."""
    port = free_port()
    on_loopback = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # also the servers of each client
    with (
        mock.patch.dict(os.environ, on_loopback),
        cluster(token=token, ray_client_server_port=port) as made,
    ):
        [server] = made.head_node.all_processes["ray_client_server"]
        await_listener(port)
        yield f"ray://127.0.0.1:{port}", server.process.pid


def free_port() -> int:
    """One that nobody is given who asks for any, as all of Ray's other servers do."""
    least = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(least // 2, least)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def await_listener(port: int, patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_all_is_measured_through_a_client_server_and_its_loss_is_the_clusters():
    with (
        served() as (address, server),
        closing(RayExecutor(address, host_services=HOST_SERVICES, code=CODE)) as executor,
    ):
        submit(executor, *(candidate(f"c{i}") for i in range(40)))
        found = collect(executor)
        assert len({m.schedule for m in found}) == 40
        assert all(m.score == latency(m.schedule) for m in found)
        assert executor.status().driver in [driver.driver for driver in drivers_at(address)]
        os.kill(server, signal.SIGKILL)
        submit(executor, candidate("late"))
        with pytest.raises(LostClusterError, match="the Ray cluster is lost"):
            collect(executor)


def test_a_client_server_refuses_a_wrong_token(monkeypatch):
    with served() as (address, _):
        monkeypatch.setenv("RAY_AUTH_TOKEN", "not the right one, but long enough")
        with pytest.raises(InputError, match=f"the cluster at {address} refuses the token"):
            RayExecutor(address)


def test_a_client_server_that_asks_nobody_for_a_token_is_refused_unless_that_is_allowed():
    with served(token=False) as (address, _):
        with pytest.raises(InputError, match=r"asks nobody for a token.*--insecure-cluster"):
            RayExecutor(address, host_services=HOST_SERVICES, code=CODE)
        with closing(
            RayExecutor(address, insecure=True, host_services=HOST_SERVICES, code=CODE)
        ) as executor:
            submit(executor, candidate("a"))
            assert len(collect(executor)) == 1
