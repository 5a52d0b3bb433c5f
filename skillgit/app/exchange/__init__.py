"""Between repositories: push, pull, remotes, and what a push must not publish."""
