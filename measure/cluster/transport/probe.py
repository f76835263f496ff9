"""Says by its exit code whether a cluster answers this process, with the token that it has.

python -m measure.cluster.transport.probe HOST:PORT|ray://HOST:PORT
"""

from __future__ import annotations

import sys
from typing import Any

ANSWERED, REFUSED = 10, 11
SECONDS = 10
CLIENT = "ray://"  # address of a cluster that is reached through a server of its own


def main() -> None:
    """Ask the cluster itself, or its server of clients."""
    address = sys.argv[1]
    answers = _server_answers if address.startswith(CLIENT) else _head_answers
    sys.exit(ANSWERED if answers(address.removeprefix(CLIENT)) else REFUSED)


def _head_answers(address: str) -> bool:
    """Tell whether the head node lists the keys of the cluster's store to us."""
    from ray import _raylet
    from ray.exceptions import AuthenticationError, RpcError

    try:
        client: Any = _raylet
        client.GcsClient(address=address).internal_kv_keys(b"", None, SECONDS)
    except AuthenticationError:
        return False
    except RpcError as error:
        sys.exit(str(error).partition("\n")[0])
    return True


def _server_answers(address: str) -> bool:
    """Tell whether the client server answers a ping."""
    import grpc
    from ray._private.grpc_utils import init_grpc_channel
    from ray.core.generated import ray_client_pb2, ray_client_pb2_grpc

    messages: Any = ray_client_pb2
    servers: Any = ray_client_pb2_grpc
    ping = messages.ClusterInfoRequest(type=messages.ClusterInfoType.PING)
    try:
        servers.RayletDriverStub(init_grpc_channel(address)).ClusterInfo(ping, timeout=SECONDS)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNAUTHENTICATED:
            return False
        sys.exit(f"{error.code().name}: {error.details()}")
    return True


if __name__ == "__main__":
    main()
