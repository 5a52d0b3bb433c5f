"""What looks like a credential: one question, asked of every text that is stored, shown, published or drafted."""
