"""What others wrote: nothing of theirs is acted on before it has passed through one of these modules."""
