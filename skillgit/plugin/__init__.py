"""Contracts for environments and backends, and how they are found."""
