"""Grading: a pure, synchronous function of (rules, job record, host answers)."""
