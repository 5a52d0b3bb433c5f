"""Skills where they are used: checked out, installed for an agent, exported, reported."""
