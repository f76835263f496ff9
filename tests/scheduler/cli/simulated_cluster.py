"""The command line on clusters whose hosts are simulated, as ones with a made-up CPU and GPU.

python -m tests.scheduler.cli.simulated_cluster tune ...
"""

from __future__ import annotations

from functools import partial

from tests.measure.cluster.nodes import CODE
from tests.measure.cluster.simulated import MIXED_HOST_SERVICES
from tilewright.measure.cluster import executor
from tilewright.scheduler.cli import main

if __name__ == "__main__":
    executor.RayExecutor = partial(
        executor.RayExecutor, host_services=MIXED_HOST_SERVICES, code=CODE
    )
    main()
