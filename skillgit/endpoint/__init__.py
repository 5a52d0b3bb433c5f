"""The metered endpoint: an address on the loopback that agents ask their model at, in the format that they speak.

Each rollout has a token. What is asked with it goes to the model of the rollout's route, through the client of models,
with its caps and its ledger, no matter which model the agent names.
"""
