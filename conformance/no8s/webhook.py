"""A webhook on this machine that answers what a case wants."""

import json
import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], Any]


class Webhook:
    """Listens until the end of the `with`. `seen` has every request body."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.answer: Answer = lambda _: {"allowed": True}
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append(body)
                outer.may_answer.wait(30)
                said = outer.answer(body)
                raw = said if isinstance(said, bytes) else json.dumps(said).encode()
                try:
                    self.send_response(outer.status)
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except OSError:
                    return

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer((os.environ.get("WEBHOOK_HOST", "127.0.0.1"), 0), Handler)

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/admit"

    def __enter__(self) -> "Webhook":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
