"""Where a use case is: the repository, the clock, the versions that words name, and the processes that work here."""
