"""How rows, keys and matrices come to shared memory by TMA."""
