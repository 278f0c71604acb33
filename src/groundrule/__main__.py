"""`python -m groundrule`."""

from groundrule.cli.main import main

main()
