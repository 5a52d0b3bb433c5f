"""The verbs: what skillgit can be asked, each described once for command line, screens, pages and agents."""
