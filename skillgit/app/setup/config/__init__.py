"""Configurations: found, merged, typed, and explained.

Importing its modules loads pydantic and yaml; commands that need a configuration import them when they are called.
"""
