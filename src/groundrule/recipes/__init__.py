"""Empty for now."""
