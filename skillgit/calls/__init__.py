"""The one door to a model: concurrency, retries, budget, accounting and the ledger."""
