"""Keys split over blocks (split-K): where parts are left or sent, and who merges them."""
