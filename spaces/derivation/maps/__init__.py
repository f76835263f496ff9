"""Programs without reductions as loop nests; begin reading at ``view.py``."""
