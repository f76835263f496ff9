"""What rules out a schedule of rows, and the sentences that say so."""
