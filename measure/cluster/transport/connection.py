"""Ray, safely: a cluster of this machine alone, or one that asks its users for a token.

For the relay's process only, which has nothing else to do with Ray's ways: it may end when the
cluster does.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import logging
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import tilewright
from tilewright.measure.cluster.transport import probe
from tilewright.measure.cluster.transport.probe import CLIENT
from tilewright.measure.cluster.transport.sockets import set_short_folder
from tilewright.measure.cpu.cores import usable_cpus
from tilewright.measure.host.directories import cache_directory
from tilewright.spaces.errors import InputError

NAMESPACE = "tilewright"
LEAST_VERSION = (2, 54)
CONNECT_SECONDS = 5.0
PROBE_SECONDS = 30.0
_LOCAL = {
    "include_dashboard": False,
    "object_store_memory": 256 << 20,  # queues are short
}
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""The variable that makes Ray, if it is 0, listen on the loopback interface only, on any system;
Ray's option ``_node_ip_address`` does not do it, for it takes 127.0.0.1 for the host's outer
address."""
_NICENESS = "RAY_worker_niceness"
"""The niceness of workers, 15 by default, with which all else would run before timed kernels."""
PACKAGES = ("spaces", "measure")
"""The packages within ``tilewright`` that workers need."""
_INSTALL = "pip install 'tilewright[ray]'"
_TOKEN = "RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"


def connect(address: str | None, insecure: bool, code: Sequence[str] = ()) -> str:
    """Connect this process to the cluster at ``address``, or to one of its own if None; its name.

    ``code`` are more folders or files of Python that workers need. :class:`InputError` if there is
    no such cluster, if its versions differ, or if it does without authentication.
    """
    check_installed()
    _set_up(asks_for_token=address is None or not insecure)
    if address is None:
        os.environ[_LOOPBACK] = "0"
        os.environ.setdefault(_NICENESS, "0")
        set_short_folder()
        _ensure_token()
        _share_path(code)
        _init(address="local", **_LOCAL, num_cpus=usable_cpus())
        import ray

        address = str(ray.get_runtime_context().gcs_address)
        _own_cluster().write_text(address)
        return address
    if address.startswith(CLIENT) and importlib.util.find_spec("grpc") is None:
        raise InputError(f"an address {CLIENT}... needs grpcio: {_INSTALL}")
    found = _found(address)
    if _is_of_loopback(*host_and_port(found)):
        os.environ[_LOOPBACK] = "0"
    _check_answers(found, insecure)
    with tempfile.TemporaryDirectory() as folder:
        modules = [str(_copied(Path(folder))), *code]
        _init(address=found, runtime_env={"py_modules": modules, "excludes": ["__pycache__"]})
    return found


def _copied(folder: Path) -> Path:
    """Return a copy in ``folder`` of the package ``tilewright``, with what workers need of it."""
    copy = folder / "tilewright"
    copy.mkdir()
    shutil.copy(str(tilewright.__file__), copy)
    for name in PACKAGES:
        (source,) = import_module(f"tilewright.{name}").__path__
        shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def check_installed() -> None:
    """:class:`InputError` where there is no Ray, or too old a one."""
    try:
        found = metadata.version("ray")
    except metadata.PackageNotFoundError:
        raise InputError(f"the executor ray needs Ray: {_INSTALL}") from None
    if tuple(int(part) for part in found.split(".")[:2]) < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise InputError(f"Ray is {found}, but {least} is needed: {_INSTALL}")


def _set_up(asks_for_token: bool) -> None:
    """Set the environment variables that Ray reads on import; usage reports are turned off."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "minor")
    if asks_for_token:
        os.environ["RAY_AUTH_MODE"] = "token"


def _share_path(code: Sequence[str]) -> None:
    """Let workers of this very machine import what this process does, and ``code``."""
    folders = [str(Path(file).parent) for file in code]
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])


def _init(**options: Any) -> None:
    import ray

    try:
        ray.init(
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **options,
        )
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise InputError(_reason(error, options["address"])) from None


def _reason(error: Exception, address: str) -> str:
    """One line for why Ray does not connect."""
    text = " ".join(str(error).split())
    if "Version mismatch" in text:
        return f"the versions of the cluster at {address} differ: {text}"
    if "token" in text.lower() or (":" in address and _answer(address).returncode == probe.REFUSED):
        if not _has_token():
            return f"the cluster at {address} asks for a token; there is none in {_TOKEN}"
        return f"the cluster at {address} refuses the token in {_TOKEN}"
    return f"no Ray cluster answers at {address}: {text:.300}"


def _is_of_loopback(host: str, port: int) -> bool:
    """Tell whether a cluster listens on the loopback interface only. Ray would then look for a
    cluster at 127.0.0.1 under this host's outer address.
    """
    if not ipaddress.ip_address(socket.gethostbyname(host)).is_loopback:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outer:
        try:
            outer.connect(("192.0.2.1", 9))  # nothing is sent
            socket.create_connection((outer.getsockname()[0], port), CONNECT_SECONDS).close()
        except OSError:
            return True
    return False


def _found(address: str) -> str:
    """Return the ``host:port`` or ``ray://host:port`` of a cluster, where somebody listens."""
    if address == "auto":
        address = _running_here()
    try:
        socket.create_connection(host_and_port(address), CONNECT_SECONDS).close()
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"no Ray cluster answers at {address}: {why}") from None
    return address


def _running_here() -> str:
    """Return the cluster that Ray's own commands would take, or else the last one of a driver of
    ours."""
    if named := os.environ.get("RAY_ADDRESS"):
        return named
    root = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir()))
    for file in (root / "ray" / "ray_current_cluster", _own_cluster()):
        if file.exists():
            return file.read_text().strip()
    raise InputError("no Ray cluster runs here; allowed: --address HOST:PORT")


def _own_cluster() -> Path:
    """Return the file that names the last cluster which a driver of this user started."""
    return cache_directory("cluster") / "address"


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of ``host:port`` or ``ray://host:port``; :class:`InputError` if it is
    neither."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise InputError(
            f"address={address!r:.80} is none; allowed: auto, HOST:PORT, ray://HOST:PORT"
        )
    return host.strip("[]"), int(port)


# -- authentication ----------------------------------------------------------------------------


def _token_file() -> Path:
    return Path.home() / ".ray" / "auth_token"


def _has_token() -> bool:
    """Tell whether there is a token where Ray looks for one."""
    named = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    return bool(named) or _token_file().exists()


def _ensure_token() -> None:
    """Write a token where Ray looks for one, readable by this user only (Ray's own would not
    be)."""
    if _has_token():
        return
    path = _token_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32))


def _check_answers(address: str, insecure: bool) -> None:
    """:class:`InputError` if no cluster is there, where Ray would try for minutes, or if it also
    talks to somebody with a wrong token, unless that is allowed."""
    done = _answer(address, RAY_AUTH_TOKEN=secrets.token_hex(32))
    if done.returncode == probe.ANSWERED and not insecure:
        raise InputError(
            f"the cluster at {address} asks nobody for a token, so whoever reaches it commands "
            "it; start it with RAY_AUTH_MODE=token, or allow this with --insecure-cluster"
        )
    if done.returncode not in (probe.ANSWERED, probe.REFUSED):
        said = done.stderr.decode(errors="replace").split()
        raise InputError(f"no Ray cluster answers at {address}: {' '.join(said[-30:])}")


def _answer(address: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run :mod:`measure.cluster.transport.probe` against the cluster, in this environment with
    more variables.
    """
    command = [sys.executable, "-m", "tilewright.measure.cluster.transport.probe", address]
    try:
        return subprocess.run(
            command,
            env={**os.environ, **environment},
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        said = f"nothing is said for {PROBE_SECONDS:g} s".encode()
        return subprocess.CompletedProcess(command, 1, b"", said)
