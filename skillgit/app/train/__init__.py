"""A training run: how it begins, goes on, publishes its progress and ends."""
