"""Recorded spaces as others wrote them, and as our exports have them."""
