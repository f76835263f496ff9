"""What a kernel can do at best, by what its target can: estimates that need no measurements."""
