"""Model backends that ship with skillgit; each is found by its entry point."""
