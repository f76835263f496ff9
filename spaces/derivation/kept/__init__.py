"""Reductions seen along the axes that they keep; begin reading at ``view.py``."""
