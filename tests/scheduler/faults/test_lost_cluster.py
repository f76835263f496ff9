"""Which clusters are connected to, and what happens when one is gone."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from importlib import metadata

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from ray._common.usage.usage_constants import CLUSTER_METADATA_KEY
from ray._private.ray_constants import KV_NAMESPACE_CLUSTER

from tests.measure.cluster.nodes import CODE, cluster
from tests.measure.cluster.simulated import HOST_SERVICES, candidate
from tests.scheduler.cli.command import SMALL, one_line
from tests.scheduler.listed import Listed
from tilewright.measure.cluster.driver.dispatcher import LostClusterError
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.cluster.transport import connection
from tilewright.measure.cluster.transport.connection import connect, host_and_port
from tilewright.measure.database import Database
from tilewright.measure.testing.executor import collect, submit
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.errors import InputError


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("10.0.0.1:6379", ("10.0.0.1", 6379)),
        ("ray://head:10001", ("head", 10001)),
        ("[::1]:6379", ("::1", 6379)),
    ],
)
def test_addresses_are_host_and_port(address, parts):
    assert host_and_port(address) == parts


@pytest.mark.parametrize(
    "address", ["", "head", "head:", ":6379", "head:99999", "head:-1", "a:b", "http://head:80"]
)
def test_anything_else_is_no_address(address):
    with pytest.raises(InputError, match=r"allowed: auto, HOST:PORT, ray://HOST:PORT"):
        host_and_port(address)


def test_where_nobody_listens_is_no_cluster():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match=f"no Ray cluster answers at {address}: .*refused"):
            RayExecutor(address)


@pytest.mark.parametrize("insecure", [False, True])
def test_what_listens_and_says_nothing_is_no_cluster(monkeypatch, insecure):
    monkeypatch.setattr(connection, "PROBE_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server, environment_as_before():
        address = f"127.0.0.1:{server.getsockname()[1]}"
        says = f"no Ray cluster answers at {address}: nothing is said for 0.5 s"
        with pytest.raises(InputError, match=says):
            connect(address, insecure)


def test_what_speaks_for_other_services_is_told_in_a_few_words():
    grpc = pytest.importorskip("grpc", reason="needs the extra ray")
    with ThreadPoolExecutor() as threads, environment_as_before():
        server = grpc.server(threads)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        with pytest.raises(InputError, match=f"no Ray cluster answers at {address}: ") as refused:
            connect(address, insecure=False)
        server.stop(None)
    assert "File" not in str(refused.value)


@contextmanager
def environment_as_before():
    """What connecting says to Ray by the environment is forgotten."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_what_a_client_server_needs_is_told_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(InputError, match=r"needs grpcio: pip install 'tilewright\[ray\]'"):
        connect("ray://127.0.0.1:10001", insecure=True)


def test_too_old_a_ray_is_said_with_what_installs_another(monkeypatch, tmp_path):
    (tmp_path / "ray-2.53.1.dist-info").mkdir()
    facts = "Metadata-Version: 2.1\nName: ray\nVersion: 2.53.1\n"
    (tmp_path / "ray-2.53.1.dist-info" / "METADATA").write_text(facts)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=r"Ray is 2.53.1, but 2.54 is needed: pip install"):
        connect("auto", insecure=False)


def test_what_is_no_client_server_is_told():
    pytest.importorskip("grpc", reason="needs the extra ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=hang_up, args=(server,), daemon=True).start()
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=f"no Ray cluster answers at {address}: "):
            RayExecutor(address)


@contextmanager
def pretending(made, **facts: str) -> Iterator[None]:
    """A cluster that says other facts of itself."""
    client = made.head_node.get_gcs_client()
    truth = client.internal_kv_get(CLUSTER_METADATA_KEY, namespace=KV_NAMESPACE_CLUSTER)

    def tell(text: bytes) -> None:
        client.internal_kv_put(CLUSTER_METADATA_KEY, text, True, KV_NAMESPACE_CLUSTER)

    tell(json.dumps(json.loads(truth) | facts).encode())
    yield
    tell(truth)


def hang_up(server: socket.socket) -> None:
    """On everybody who calls, until the server is closed."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


def test_a_cluster_that_asks_nobody_for_a_token_is_refused_unless_that_is_allowed(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    with cluster(token=False) as made:
        words = ("tune", *SMALL, "--executor", "ray", "--address", made.address)
        assert run(words) == 2
        said = one_line(capsys.readouterr().err)
        assert f"the cluster at {made.address} asks nobody for a token" in said
        assert "or allow this with --insecure-cluster" in said
        with pretending(made, ray_version="2.0.1"):
            assert run((*words, "--insecure-cluster")) == 2
        said = one_line(capsys.readouterr().err)
        assert f"the versions of the cluster at {made.address} differ: " in said
        assert said.index("Ray: 2.0.1") < said.index(f"Ray: {metadata.version('ray')}")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_cluster_that_asks_nobody_for_a_token_measures_where_that_is_allowed():
    with cluster(token=False) as made:
        executor = RayExecutor(made.address, insecure=True, host_services=HOST_SERVICES, code=CODE)
        with closing(executor):
            submit(executor, candidate("a"))
            assert len(collect(executor)) == 1


@pytest.mark.slow
def test_a_run_whose_head_is_lost_ends_in_a_line_and_goes_on_where_its_token_is_right(
    monkeypatch, tmp_path
):
    space, database = hills(), Database(tmp_path / "t.db")

    def tune(address, trials, on_progress=None):
        with closing(RayExecutor(address, host_services=HOST_SERVICES, code=CODE)) as executor:
            listed = partial(Listed, seed=0)
            tuner = Tuner(space.workload, space.target, database, executor, listed, spaces=[space])
            return tuner.run(trials, 120.0, on_progress=on_progress)

    lost: list[None] = []
    with cluster() as made:

        def lose(progress):
            if progress.trials >= 20 and not lost:
                lost.append(made.head_node.kill_gcs_server())

        with pytest.raises(LostClusterError, match="the Ray cluster is lost"):
            tune(made.address, 1000, lose)
    kept = sum(1 for _ in database.records(space.workload, space.target))
    assert kept >= 20
    with cluster() as made:
        resumed = tune(made.address, 20)
        assert resumed.resumed == kept
        assert resumed.trials == 20
        monkeypatch.setenv("RAY_AUTH_TOKEN", "not the right one, but long enough")
        with pytest.raises(InputError, match="refuses the token"):
            RayExecutor(made.address)
        monkeypatch.delenv("RAY_AUTH_TOKEN")
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(InputError, match="asks for a token; there is none in RAY_AUTH_TOKEN,"):
            RayExecutor(made.address)
