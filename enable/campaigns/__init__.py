"""The dialogs of many operators, on an engine, and what they have shown."""
