"""The checks that score a result: what each takes, how it grades, and what several of them add up to."""
