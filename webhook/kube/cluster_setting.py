"""What the configuration of the installed webhook tells: the setting --opt-in-all, and the webhook's namespace."""

from __future__ import annotations

from typing import Final

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.core.opt_in import OptInAll, opt_in_all_of
from webhook.core.placement.replica_share import own_namespace_of
from webhook.kube import reader

_PATH: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kubevirt-coschedule"


async def read_opt_in_all(api: Api) -> tuple[OptInAll, str]:
    """Return the setting, and why it is not known; `off` if it is not known, or if the webhook is not installed."""
    try:
        return opt_in_all_of(await reader.get(api, _PATH)), ""
    except reader.Missing:
        return "off", ""
    except ApiError as problem:
        return "off", str(problem)


async def read_own_namespace(api: Api) -> str:
    """Return the namespace of the webhook's own pods; that of manifests/ if the configuration can't be read."""
    try:
        return own_namespace_of(await reader.get(api, _PATH))
    except (reader.Missing, ApiError):
        return own_namespace_of({})
