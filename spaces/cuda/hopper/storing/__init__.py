"""The store of a Hopper tile: from the registers of its warpgroups to the output."""
