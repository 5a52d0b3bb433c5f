"""New versions by hand: every candidate that a person asks for passes the gate of its run."""
