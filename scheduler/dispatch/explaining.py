"""A dispatch table as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.scheduler.dispatch.table import ESTIMATED, Row, Table, TableKernel

Cells = tuple[str, ...]

KERNEL_COLUMNS = ("#kernel", "#latency", "provenance", "open", "schedule")
ROW_COLUMNS = ("sizes", "#kernel", "how")


def facts(table: Table) -> list[tuple[str, str]]:
    """Names and values of what is true of the whole table."""
    axis = table.family.axis
    by_torch = sum(row.last - row.first + 1 for row in table.rows if row.torch)
    estimated = [str(each.size) for each in table.kernels if each.provenance == ESTIMATED]
    return [
        ("workload", str(table.family)),
        ("target", table.target.summary),
        ("sizes", f"{axis}=1 to {table.last}"),
        ("profile", str(table.profile)),
        ("expected regret", f"{100 * table.regret:.1f} %"),
        ("worst regret", f"{100 * table.worst:.1f} % at {axis}={table.worst_at}"),
        *([("left to torch", f"{by_torch} sizes")] if by_torch else []),
        *([("estimated", f"the latencies of {', '.join(estimated)}")] if estimated else []),
    ]


def kernel_rows(table: Table) -> list[Cells]:
    """Return a line for each kernel."""
    return [
        (
            str(each.size),
            _microseconds(each.seconds),
            each.provenance,
            _open(each),
            "-" if each.schedule is None else str(each.schedule),
        )
        for each in table.kernels
    ]


def _open(kernel: TableKernel) -> str:
    """Return the ranges of fewer rows that open kernels of a size take, each by a schedule."""
    firsts = [1, *(each.last + 1 for each in kernel.opened)]
    pairs = zip(firsts, kernel.opened, strict=False)
    return ", ".join(range_text(first, each.last) for first, each in pairs) or "-"


def size_rows(table: Table) -> list[Cells]:
    """Return a line for each range of sizes."""
    return [
        (
            range_text(row.first, row.last),
            "torch" if row.torch else str(row.size),
            "" if row.torch else _how(row, row.size in table.open_sizes),
        )
        for row in table.rows
    ]


def _how(row: Row, is_open: bool) -> str:
    """Return the ways in which the kernel serves calls of a row's sizes."""
    ways = {
        "open" if is_open else "copied": row.first < row.size,
        "whole": row.first <= row.size <= row.last,
        "in pieces": row.last > row.size,
    }
    return ", ".join(way for way, is_met in ways.items() if is_met)


def sizes_of(table: Table) -> str:
    """Return the sizes that kernels of a table serve, and those kernels, in one line."""
    kernels = ", ".join(str(each.size) for each in table.kernels)
    by_torch = [range_text(row.first, row.last) for row in table.rows if row.torch]
    beside = f", torch at {', '.join(by_torch)}" if by_torch else ""
    return f"{table.family.axis}=1 to {table.last} by kernels of {kernels}{beside}"


def range_text(first: int, last: int) -> str:
    """Return a range of sizes, such as ``1-3``; one size alone as it is."""
    return str(first) if first == last else f"{first}-{last}"


def table_text(table: Table) -> str:
    """Return the whole table in aligned lines."""
    lines = [f"{name:16} {value}" for name, value in facts(table)]
    for columns, rows in (
        (KERNEL_COLUMNS[:4], [row[:4] for row in kernel_rows(table)]),
        (ROW_COLUMNS, size_rows(table)),
    ):
        lines += ["", *_aligned([tuple(name.strip("#") for name in columns), *rows])]
    return "\n".join(lines)


def _aligned(rows: Sequence[Cells]) -> Iterator[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us"
