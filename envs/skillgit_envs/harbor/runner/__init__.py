"""Programs for the Python that has Harbor; nothing here imports skillgit, and skillgit imports nothing of it."""
