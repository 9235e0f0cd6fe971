"""`python -m certs`."""

import sys

from certs.cli import main

if __name__ == "__main__":
    sys.exit(main())
