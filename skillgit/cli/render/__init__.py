"""Values of the application as text: pure functions of a value, a screen and the time."""
