"""``python -m experiments.dashboard``: see :mod:`experiments.dashboard.slowdown`."""

from experiments.dashboard.slowdown import main

if __name__ == "__main__":
    main()
