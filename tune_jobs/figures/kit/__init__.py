"""What figures are made of: each module draws one kind of mark."""
