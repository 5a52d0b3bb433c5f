"""What a repository holds, written elsewhere for those who do not use git."""
