"""Rules of the rows template: which schedules are refused, and the sentences that say why."""
