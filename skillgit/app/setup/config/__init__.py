"""Configurations: found, merged, typed, explained. Import late: its modules load pydantic and yaml."""
