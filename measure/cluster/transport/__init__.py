"""The modules that speak with Ray: the driver's relay and the actors."""
