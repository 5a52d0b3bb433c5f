"""Where the rules of a skill come from, how they changed, and what they are worth."""
