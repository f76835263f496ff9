"""``tilewright cache``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tilewright.scheduler.cli.options import Format


def cache_command(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all cached files.")] = False,
    format: Annotated[
        Format, typer.Option("--format", help="table: for people; json: one line.")
    ] = Format.TABLE,
) -> None:
    """Show the cache of compiled kernels and helpers, or clear it.

    Removed files are built again when needed. Each kind keeps 256 MiB; the least recently used
    files are removed first.

    \b
    Examples:
      tilewright cache
      tilewright cache --clear
    """
    from tilewright.measure.host import cache
    from tilewright.scheduler.cli.output import print_table

    if clear:
        cache.clear()
    found = cache.cached_kinds()
    if format is Format.JSON:
        kinds = [
            {"kind": h.kind, "path": str(h.path), "files": h.files, "bytes": h.bytes} for h in found
        ]
        print(json.dumps(kinds))
        return
    rows = [(h.kind, str(h.path), str(h.files), _mebibytes(h.bytes)) for h in found]
    files, size = sum(h.files for h in found), sum(h.bytes for h in found)
    rows.append(("all", str(found[0].path.parent), str(files), _mebibytes(size)))
    print_table(("kind", "path", "#files", "#size"), rows)


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
