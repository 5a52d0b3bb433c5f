"""What happened: runs, events, differences, items, costs, and runs that are being trained."""
