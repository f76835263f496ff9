"""Estimate the memory for measuring kernels of a workload on a CPU, before measuring begins.

The tuner holds inputs and their sums in float64. A file in memory holds the inputs of the draw and
two bounds of each element of the output. The server holds a copy of the inputs between guards, and
each candidate has an output and a workspace of its own. Caches may be flushed between calls.
"""

from __future__ import annotations

from tilewright.measure.cpu.cache_flush import flush_bytes
from tilewright.measure.memory import memory_limit
from tilewright.spaces.numerics.allowance import bounds_dtype
from tilewright.spaces.workloads.workload import Workload

PROGRAM_BYTES = 300 << 20  # memory of the tuner and a compiler, with their libraries
BUFFER_BYTES = 2 << 30  # outputs and workspaces of the candidates of one server, at most
WIDE = 8  # bytes of one sum in float64


def needed_bytes(workload: Workload) -> int:
    """Memory that tuning takes at least: one candidate at a time, which packs all inputs."""
    alone = outputs_bytes(workload) + _inputs_bytes(workload)
    return measuring_bytes(workload, alone)


def measuring_bytes(workload: Workload, buffers: int) -> int:
    """Memory in use where outputs and workspaces of the candidates of one server are ``buffers``
    bytes: the most of while inputs are drawn, and while candidates run."""
    return PROGRAM_BYTES + max(_drawing_bytes(workload), _held_bytes(workload) + buffers)


def buffer_bytes(workload: Workload, limit: int | None = None) -> int:
    """Return the bytes that all candidates of one server may use together, so that they stay within
    ``limit``, by default the machine's memory.
    """
    limit = memory_limit() if limit is None else limit
    return max(0, min(BUFFER_BYTES, limit - PROGRAM_BYTES - _held_bytes(workload)))


def _inputs_bytes(workload: Workload) -> int:
    return sum(operand.bytes for operand in workload.inputs)


def outputs_bytes(workload: Workload) -> int:
    """Return memory of all outputs."""
    return sum(operand.bytes for operand in workload.outputs)


def _outputs_size(workload: Workload) -> int:
    return sum(operand.size for operand in workload.outputs)


def _file_bytes(workload: Workload) -> int:
    bounds = sum(2 * bounds_dtype(output).bytes * output.size for output in workload.outputs)
    return _inputs_bytes(workload) + bounds


def _held_bytes(workload: Workload) -> int:
    """Return the bytes held while candidates run: the inputs of the draw, the file, the server's
    copy, and what others write; of a product the sums, too."""
    sums = WIDE * _outputs_size(workload) if workload.matmul else 0
    held = sums + _file_bytes(workload) + 2 * _inputs_bytes(workload)
    return held + flush_bytes(workload)


def _drawing_bytes(workload: Workload) -> int:
    """Return the bytes held while inputs are drawn: those of the draw, the file, and of a product
    magnitudes, sums and signs; of another program a piece of it while that is evaluated."""
    if not workload.matmul:
        from tilewright.measure.drawing.programs import evaluation_bytes

        drawn = _inputs_bytes(workload) + _file_bytes(workload)
        return drawn + evaluation_bytes(workload.program)
    output = _outputs_size(workload)
    return (WIDE + 1) * output + _file_bytes(workload) + 2 * _inputs_bytes(workload)
