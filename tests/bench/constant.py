"""What the webhook is measured against: an aiohttp application that reads a body and answers a constant.

Called as `constant.py CERT_FILE KEY_FILE ANSWER_BYTES`; says where it listens as `serve` does.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys

from aiohttp import web


async def _serve(cert_file: str, key_file: str, answer_bytes: int) -> None:
    constant = b'"' + b"x" * (answer_bytes - 2) + b'"'

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=constant, content_type="application/json")

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.load_cert_chain(cert_file, key_file)
    application = web.Application(client_max_size=8 * 1024 * 1024)
    application.router.add_post("/mutate/virt-launcher", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    sys.stderr.write(json.dumps({"message": "serving", "listen": f"https://127.0.0.1:{port}"}, separators=(",", ":")))
    sys.stderr.write("\n")
    sys.stderr.flush()
    await asyncio.Event().wait()


def main() -> None:
    """Serve until killed, on the same event loop as the webhook takes."""
    factory = None
    try:
        import uvloop  # noqa: PLC0415 - an extra

        factory = uvloop.new_event_loop
    except ImportError:
        pass
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))


if __name__ == "__main__":
    main()
