"""What thread blocks of several templates share: tiles, copies, sums, the end of a tile."""
