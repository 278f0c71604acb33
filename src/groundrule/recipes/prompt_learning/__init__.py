"""System prompt learning as a run: rounds of answers, reflection and tests, and a final test at the end."""
