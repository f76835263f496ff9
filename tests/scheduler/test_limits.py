"""What is refused before anything is measured, for want of memory."""

from __future__ import annotations

import pytest

from tilewright.measure.cpu.memory import needed_bytes
from tilewright.scheduler.limits import check_memory
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

PRODUCT = workload("matmul", m=64, n=64, k=64)


def test_on_a_cpu_all_that_is_needed_has_to_be_there() -> None:
    needed = needed_bytes(PRODUCT)
    check_memory(PRODUCT, detect_cpu(1), needed)
    with pytest.raises(InputError, match="GiB of memory to be tuned"):
        check_memory(PRODUCT, detect_cpu(1), needed - 1)


def test_a_gpu_says_itself_what_it_has_no_room_for() -> None:
    check_memory(PRODUCT, detect_target("cuda:sm_90a"), 1)
