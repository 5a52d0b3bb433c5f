"""``skillgit data``: whether the items of a configuration can be trusted, and where public ones come from."""
