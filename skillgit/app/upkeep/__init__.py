"""Whether history is whole: checks, repair, garbage, the index, and replay."""
