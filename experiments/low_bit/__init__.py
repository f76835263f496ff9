"""Products with weights of 1 to 8 bits beside those of torch, and of float32."""
