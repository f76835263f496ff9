"""Share a database: two processes write to one file, then a colleague's file is merged into it.

On several machines, take the URL of a PostgreSQL server wherever a file is named here.
"""

import multiprocessing
import os

from tilewright import Database, query, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "32"))


def job(columns: int, database: str) -> None:
    """Tune a softmax of 64 rows."""
    tune(f"softmax r=64 c={columns}", "cpu", database, trials=TRIALS, seconds=60)


if __name__ == "__main__":
    spawning = multiprocessing.get_context("spawn")
    jobs = [spawning.Process(target=job, args=(columns, "team.db")) for columns in (64, 128)]
    for process in jobs:
        process.start()
    for process in jobs:
        process.join()
        assert process.exitcode == 0

    job(256, "colleague.db")
    with Database("team.db") as team, Database("colleague.db") as colleague:
        print("records that are new to the team:", team.merge(colleague))
        print("and when they are merged again:  ", team.merge(colleague))
        for columns in (64, 128, 256):
            answer = query(f"softmax r=64 c={columns}", "cpu", team)
            print(f"{columns} columns: {answer.provenance}, {answer.latency * 1e6:.2f} us")
