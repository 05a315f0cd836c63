"""Campaigns: run the dialogs of many operators on an engine, and report the results."""
