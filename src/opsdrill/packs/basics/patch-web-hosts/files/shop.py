"""The shop's front end: tells its version, as monitoring asks for it."""

import http.server
from pathlib import Path

VERSION = Path("/opt/shop/VERSION").read_text().strip()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name is the library's
        body = f"{VERSION}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
