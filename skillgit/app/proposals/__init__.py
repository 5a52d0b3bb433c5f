"""What is proposed of trained skills: a branch of one commit, and a pull request where one is wanted."""
