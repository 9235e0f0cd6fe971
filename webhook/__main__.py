"""`python -m webhook` is the same program as `kubevirt-coschedule`."""

from webhook.component_base.start import run

run("webhook.cli")
