"""From a configuration to the models, the environment and the items that a command needs."""
