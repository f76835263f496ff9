"""``tilewright doctor``."""

from __future__ import annotations

from tilewright.scheduler.cli.options import Threads
from tilewright.scheduler.cli.text import without_passwords
from tilewright.spaces.errors import InputError


def doctor_command(threads: Threads = None) -> None:
    """Print what this machine has: compiler, CPU, peaks, NumPy's BLAS, optional packages."""
    from tilewright.scheduler.cli.output import print_table
    from tilewright.scheduler.doctor import State, diagnose

    findings = list(diagnose(threads))
    rows = [(each.name, str(each.state), without_passwords(each.text)) for each in findings]
    print_table(("what", "state", "finding"), rows)
    for finding in findings:
        if finding.state is State.ERROR:
            raise InputError(finding.text)
