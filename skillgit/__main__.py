"""Run the command line with ``python -m skillgit``."""

from skillgit.cli.main import main

if __name__ == "__main__":
    main()
