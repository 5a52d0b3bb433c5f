"""What was measured already: outcomes, scores, and what they say about noise and about a run."""
