"""Other tools' transcripts, read as job records: one format a file, found by its content."""
