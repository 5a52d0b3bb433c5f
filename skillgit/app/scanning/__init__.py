"""What a push must not publish, how it is found, and what people allow."""
