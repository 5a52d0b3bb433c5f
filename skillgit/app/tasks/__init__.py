"""``skillgit tasks``: files of tasks for the environment ``tasks``: adding to them, drafting them, reviewing drafts."""
