"""Small tools that every layer may use: files, JSON lines, bounded concurrency, progress, seeds."""
