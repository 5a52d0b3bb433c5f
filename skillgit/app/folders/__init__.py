"""Folders outside of git: what stands in them, and how one takes the place of another at once."""
