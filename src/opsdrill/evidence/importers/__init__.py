"""Importers of other tools' transcripts: one format a file, or a folder where it takes several."""
