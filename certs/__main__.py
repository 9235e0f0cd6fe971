"""`python -m certs` is the same program as `kubevirt-coschedule-certs`."""

from typing import NoReturn

from webhook.component_base.start import run


def main() -> NoReturn:
    """Run the program."""
    run("certs.cli")


if __name__ == "__main__":
    main()
