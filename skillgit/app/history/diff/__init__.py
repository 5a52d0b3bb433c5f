"""How two versions differ: in text, rule by rule, and item by item."""
