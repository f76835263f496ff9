"""``python -m experiments.reports``: see :mod:`experiments.reports.large`."""

from experiments.reports.large import main

if __name__ == "__main__":
    main()
