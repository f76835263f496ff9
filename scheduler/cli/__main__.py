"""``python -m scheduler.cli`` is ``tilewright``."""

from scheduler.cli import main

main()
