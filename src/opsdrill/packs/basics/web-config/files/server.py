"""The status page: answers /health on the configured port, or does not start at all."""

import http.server
import json
import sys
from pathlib import Path

CONFIG = Path("/etc/status/config.json")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name is the library's
        body = json.dumps({"status": "ok", "site": SITE}).encode()
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


try:
    settings = json.loads(CONFIG.read_text())
    SITE = settings["site"]
    port = int(settings["port"])
except (OSError, ValueError, KeyError) as error:
    sys.exit(f"status: {CONFIG}: {error}")
http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()
