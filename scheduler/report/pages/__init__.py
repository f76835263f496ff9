"""Write reports as pages, and serve them while results arrive."""
