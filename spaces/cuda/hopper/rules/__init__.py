"""Rules of the Hopper template: which schedules are refused, and the sentences that say why."""
