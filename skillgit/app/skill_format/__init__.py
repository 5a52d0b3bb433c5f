"""The format of Agent Skills: its rules, its frontmatter, and skill folders on disk."""
