"""Knowledge: documents in, answers with citations out."""
