"""What speaks with Ray: the driver's courier and the actors."""
