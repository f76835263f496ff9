"""What is to be computed: contractions, computations, and how both are seen."""
