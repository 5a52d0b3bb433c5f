"""Where a use case is: the repository, the clock, and the versions that words name."""
