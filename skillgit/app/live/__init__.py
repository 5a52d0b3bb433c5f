"""A run in the making as other processes see it: what its trainer publishes, and how it is asked to stop."""
