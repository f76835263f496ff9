"""What the inner loops of several templates share: vectors, register tiles, epilogues."""
