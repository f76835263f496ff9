"""Write a kernel as a file of its own, with how to compile and call it."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.scheduler.answer import Answer
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Role
from tilewright.spaces.language.text import entry_text
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.version import VERSION
from tilewright.spaces.workloads.matmul import Operand

SPELLINGS = {
    "bfloat16": "the upper 16 bits of a float32",
    "tfloat32": "a float32 of which the tensor cores read 19 bits",
}


def source_file(answer: Answer) -> str:
    """Return the kernel of an answer as C or CUDA C++ text that compiles as it stands, with the
    command in its comment."""
    return file_of_schedule(answer.space, answer.schedule, f" ({answer.provenance})")


def file_of_schedule(space: Space, schedule: Schedule, remark: str = "") -> str:
    """Return the kernel of a schedule of ``space`` as :func:`source_file` does, with a remark on
    the schedule in its comment."""
    kernel, target = space.lower(schedule), space.target
    about = _about(space, f"schedule{remark}: {schedule}")
    if isinstance(target, CpuTarget):
        return _commented(about, _cpu(target, kernel)) + kernel.source.text
    from tilewright.spaces.cuda.intrinsics import device_text

    text = device_text(kernel.source.text) + kernel.source.text
    return _commented(about, _cuda(target, kernel)) + text


def _about(space: Space, schedule: str) -> Iterator[str]:
    yield str(space.workload)
    yield f"    {space.workload.formula}"
    yield f"for {space.target.summary}, by tilewright {VERSION}"
    yield schedule


def _cpu(target: CpuTarget, kernel: Kernel) -> Iterator[str]:
    command = (target.compiler, *target.compiler_flags, "-shared -fPIC kernel.c -o kernel.so -lm")
    yield f"Compile: {' '.join(command)}"
    yield f"Call:    {kernel.call.entry}(buffers, workspace, runtime)"
    for place, argument in enumerate(kernel.call.arguments):
        yield f"    buffers[{place}]: {_argument(argument)}"
    yield f"    workspace:  {_workspace(kernel.call)}"
    if target.threads == 1:
        yield "    runtime:    NULL, this kernel is of one thread"
    else:
        yield "    runtime:    its parallel(pool, workers, task, context) calls task(context, w)"
        yield "                for every w < workers, all at the same time, and returns after all"


def _cuda(target: Target, kernel: Kernel) -> Iterator[str]:
    from tilewright.spaces.cuda.target import CudaTarget

    assert isinstance(target, CudaTarget)
    flags = f"-std=c++17 -fmad=false -arch={target.name}"
    yield f"Compile: nvcc {flags} -cubin kernel.cu -o kernel.cubin"
    for launch in kernel.call.launches:
        yield from _launch(kernel.call, launch)
    if any(launch.buffers for launch in kernel.call.launches):
        yield f"workspace: {_workspace(kernel.call)}"


def _launch(call: Call, launch: Launch) -> Iterator[str]:
    yield f"Launch:  {call.function(launch)}, grid {launch.grid}, block {launch.block},"
    yield f"         cluster {launch.cluster}, dynamic shared memory {launch.shared_bytes} bytes"
    if launch.early:
        yield "         with programmatic stream serialization: it waits for the launch before it"
    yield "Arguments, in this order (pointers are aligned to 16 bytes):"
    arguments = {argument.array.name: argument for argument in call.arguments}
    for buffer in call.buffers(launch):
        if buffer.inside in arguments:
            yield f"    {_argument(arguments[buffer.inside])}"
        elif launch.buffers:
            yield f"    {buffer.name}: {buffer.bytes} bytes, from byte {buffer.start} of workspace"
        else:
            yield f"    workspace: {_workspace(call)}"
    for spec in launch.tensor_maps:
        yield (
            f"    CUtensorMap over {spec.operand}: {spec.dtype}, dims {spec.dims}, strides of "
            f"{spec.strides} bytes, box {spec.box}, swizzle of {spec.swizzle} bytes"
        )


def _argument(argument: Argument) -> str:
    operand, written = argument.array, argument.role is not Role.IN
    axes = operand.axes if isinstance(operand, Operand) else _axes(len(operand.shape))
    index = entry_text(operand.name, axes, ",")
    places = [f"{step} * {axis}" for axis, step in zip(axes, operand.strides, strict=True)]
    shape = " x ".join(map(str, operand.shape)) or "one"
    spelling = SPELLINGS.get(operand.dtype)
    kind = f"{operand.dtype} ({spelling})" if spelling else operand.dtype
    what = f"{operand.name}, {shape} {kind}, {dtype(operand.dtype).bytes} bytes each"
    where = f"; {index} is element {' + '.join(places)}" if places else ""
    return f"{what}{where}{'; written' if written else ''}"


def _axes(count: int) -> tuple[str, ...]:
    """Return the names for the axes of an array that has none."""
    return tuple(f"i{place}" for place in range(count))


def _workspace(call: Call) -> str:
    if not call.workspace_bytes:
        return "NULL"
    first = ""
    if call.workspace_zeroed:
        first = f"; its first {call.workspace_zeroed} bytes are zero before the first call"
    return f"{call.workspace_bytes} bytes, aligned to 64, used by one call at a time{first}"


def _commented(*paragraphs: Iterator[str]) -> str:
    """Line comments, which nothing within them can end."""
    blocks = ("\n".join(f"// {_printable(line)}" for line in lines) for lines in paragraphs)
    return "\n//\n".join(blocks) + "\n\n"


def _printable(line: str) -> str:
    """A backslash at its end would make the next line a comment too."""
    return "".join(c if c.isprintable() else "?" for c in line).rstrip("\\ ")
