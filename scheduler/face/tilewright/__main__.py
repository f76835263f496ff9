"""``python -m tilewright`` is the command ``tilewright``."""

from tilewright.scheduler.cli import main

if __name__ == "__main__":
    main()
