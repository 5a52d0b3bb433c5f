"""Adopted skills: where agents look for them, and what is remembered of the places they were put at."""
