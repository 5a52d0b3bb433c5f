"""Sessions of coding agents, read from the files that the agents keep of them."""
