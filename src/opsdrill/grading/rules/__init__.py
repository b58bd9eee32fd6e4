"""One validator a file; each judges one rule from the evidence."""
