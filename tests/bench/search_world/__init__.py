"""One generated world of tasks with hidden rules, and two ways to search in it for a better skill."""
