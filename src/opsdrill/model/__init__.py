"""The nouns: frozen, strict models. No I/O; imports nothing of ours but `errors`."""
