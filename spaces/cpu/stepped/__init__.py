"""Kernels of stages that read themselves one step before on a CPU: recurrent networks, delta rules.

``code`` shares rows and lanes among workers, ``step`` writes what is computed at one step.
"""
