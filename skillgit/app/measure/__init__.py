"""What does this skill score: evaluations, verification, and gates between revisions."""
