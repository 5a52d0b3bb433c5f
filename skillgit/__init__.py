"""skillgit trains Agent Skills and keeps every training decision in git."""

__version__ = "0.1.0"
