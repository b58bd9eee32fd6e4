"""The bodies of the REST API, one file a noun; its server and its client share them. Pure."""
