"""``skillgit diff``: how two versions differ, in their text, rule by rule and item by item."""
