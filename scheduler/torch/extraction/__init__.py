"""The workloads of a model before it runs: its calls, its captured graphs, its distinct regions."""
