"""Programs whose reductions go over prefixes of one axis; begin reading at ``view.py``."""
