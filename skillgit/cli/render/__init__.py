"""Values of the application as text."""
