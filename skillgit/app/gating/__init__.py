"""What a gate decides outside a training step: candidates that a person asks for, measured and judged like a step's."""
