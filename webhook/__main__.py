"""`python -m webhook` is the same program as `kubevirt-coschedule`."""

from typing import NoReturn

from webhook.component_base.start import run


def main() -> NoReturn:
    """Run the program."""
    run("webhook.cli")


if __name__ == "__main__":
    main()
