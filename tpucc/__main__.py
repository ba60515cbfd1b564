"""`python -m tpucc` is the command line."""

from tpucc.cli.main import main

main()
