"""The command line: one file a verb, listed in `main.VERBS`, imported only when it is called."""
