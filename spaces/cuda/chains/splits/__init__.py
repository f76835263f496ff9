"""Keys split over blocks: where parts are left or sent, and who merges them."""
