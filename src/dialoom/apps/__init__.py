"""Applications built of the parts below them."""
