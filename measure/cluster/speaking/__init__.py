"""The modules that speak with Ray: the driver's courier and the actors."""
