"""``skillgit report``: a whole run gathered into one value, for readers who have no repository."""
