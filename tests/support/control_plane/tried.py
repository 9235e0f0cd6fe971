"""Objects that the API server is only asked about."""

from __future__ import annotations

from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object


def refusal(api: Api, wanted: Object) -> str:
    """What the API server says against an object, which it only tries; empty where it takes it."""
    try:
        api.create(wanted, dryRun="All")
    except ApiError as error:
        return error.message
    return ""
