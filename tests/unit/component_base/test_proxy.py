"""Which calls take the proxy of the environment: the rules of golang.org/x/net/http/httpproxy, which kubectl has."""

import pytest

from webhook.component_base.client.config import proxy_of

PROXY = "http://proxy.example:3128"
SERVICE = "https://10.96.0.1:443"

ROWS = [
    pytest.param(SERVICE, "", PROXY, id="nothing is left out"),
    pytest.param(SERVICE, "10.96.0.0/12", None, id="a CIDR has the address"),
    pytest.param(SERVICE, "192.168.0.0/16,10.97.0.0/16", PROXY, id="no CIDR has the address"),
    pytest.param(SERVICE, " 10.96.0.1 ", None, id="the address"),
    pytest.param(SERVICE, "10.96.0.1:443", None, id="the address with its port"),
    pytest.param(SERVICE, "10.96.0.1:6443", PROXY, id="the address with another port"),
    pytest.param("https://[fd00::1]:6443", "fd00::/8", None, id="a CIDR of IPv6"),
    pytest.param("https://[fd00::1]:6443", "[fd00::1]:6443", None, id="an address of IPv6 with its port"),
    pytest.param("https://api.example:6443", "example", None, id="a domain has its names"),
    pytest.param("https://example:6443", "example", None, id="a domain has itself"),
    pytest.param("https://example", ".example", PROXY, id="with a dot it has only its names"),
    pytest.param("https://api.example", "*.example", None, id="a star is the same"),
    pytest.param("https://api.example", "example:443", None, id="a domain with the port of the scheme"),
    pytest.param("https://notexample", "example", PROXY, id="a part of a name is no domain"),
    pytest.param("https://api.example", "*", None, id="everything"),
    pytest.param("https://api.example", ",:443,", PROXY, id="entries without a host"),
    pytest.param("https://localhost:6443", "", None, id="localhost"),
    pytest.param("https://127.0.0.1:6443", "", None, id="loopback"),
    pytest.param("http://api.example", "", None, id="a scheme without a proxy"),
]


@pytest.mark.parametrize(("url", "no_proxy", "proxy"), ROWS)
def test_calls_take_the_proxy_as_those_of_kubectl(
    url: str, no_proxy: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_PROXY names what is reached directly."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("no_proxy", no_proxy)
    assert proxy_of(url) == proxy


def test_a_proxy_without_a_scheme_is_one_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users write it."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    assert proxy_of("https://api.example") == PROXY
