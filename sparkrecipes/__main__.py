"""``python -m sparkrecipes`` is the command line."""

import sys

from sparkrecipes.cli import main

if __name__ == "__main__":
    sys.exit(main())
