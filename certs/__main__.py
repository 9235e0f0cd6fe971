"""`python -m certs` is the same program as `kubevirt-coschedule-certs`."""

from webhook.component_base.start import run

run("certs.cli")
