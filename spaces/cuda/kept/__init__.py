"""The template of reductions with lanes along a kept axis: pooling, depthwise, sums of columns."""
