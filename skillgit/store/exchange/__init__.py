"""Exchange with other repositories: history goes out and comes in by the git binary, which knows the user's keys."""
