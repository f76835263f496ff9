"""What rules out a schedule of a Hopper contraction, and the sentences that say so."""
