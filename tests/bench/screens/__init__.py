"""The screens of ``skillgit tui`` in a real terminal: how soon they open, and what keys cost."""
