"""Use cases, one verb per file; they return values and never print."""
