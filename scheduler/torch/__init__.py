"""PyTorch models: regions of their graphs become workloads. Only its modules import torch."""
