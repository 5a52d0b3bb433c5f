"""What is shown, in which words, marks and colours, for whichever surface."""
