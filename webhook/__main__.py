"""`python -m webhook` is the same program as `kubevirt-coschedule`."""

import sys

from webhook.cli import main

sys.exit(main())
