"""What reading any transcript takes: its file, lines and parts, and a job record in the making."""
