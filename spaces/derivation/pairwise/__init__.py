"""Programs that are sums over all pairs of a row and a key, both along rows and along keys."""
