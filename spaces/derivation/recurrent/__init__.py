"""Programs that walk along positions with a state; begin reading at ``view.py``."""
