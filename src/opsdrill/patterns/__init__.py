"""The regex dialect: Python's `re.search(pattern, value, re.IGNORECASE)`, bounded and fast."""
