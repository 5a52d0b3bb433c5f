"""The projection: a SQLite index of history that can be rebuilt at any time."""
