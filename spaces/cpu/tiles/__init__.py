"""What the inner loops of several templates share: register tiles, dot products, epilogues."""
