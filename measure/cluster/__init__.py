"""The executor on Ray: builds and measures candidates on the workers of a cluster."""
