"""Contract of every backend of the tuning database.

Inherit from :class:`DatabaseContract` and give two fixtures, paths or URLs: ``location`` of a
database that has tables and nothing in them, and ``new_location``, where none has been made yet.
"""

from __future__ import annotations

from tilewright.measure.testing.database_exports import ExportsContract
from tilewright.measure.testing.database_ranking import RankingContract
from tilewright.measure.testing.database_records import RecordsContract
from tilewright.measure.testing.database_sharing import SharingContract


class DatabaseContract(RecordsContract, RankingContract, SharingContract, ExportsContract):
    """The whole contract of a database."""
