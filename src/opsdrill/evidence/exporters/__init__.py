"""Job records in the formats of other tools: one format a file."""
