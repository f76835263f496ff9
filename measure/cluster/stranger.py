"""Says by its exit code whether a cluster answers this process, with the token that it has.

python -m measure.cluster.stranger HOST:PORT
"""

from __future__ import annotations

import sys
from typing import Any

ANSWERED, REFUSED = 10, 11
SECONDS = 10


def main() -> None:
    """Ask for the keys that the cluster keeps."""
    from ray import _raylet
    from ray.exceptions import AuthenticationError

    try:
        client: Any = _raylet
        client.GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, SECONDS)
    except AuthenticationError:
        sys.exit(REFUSED)
    sys.exit(ANSWERED)


if __name__ == "__main__":
    main()
