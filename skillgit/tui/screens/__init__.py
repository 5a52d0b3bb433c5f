"""One file per screen; each asks use cases through the app and shows what they return."""
