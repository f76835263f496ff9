"""What predicts latencies beside the model of boosted trees, or by several of them."""
