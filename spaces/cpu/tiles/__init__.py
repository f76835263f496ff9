"""The inner loops that several templates share: register tiles, dot products, epilogues."""
