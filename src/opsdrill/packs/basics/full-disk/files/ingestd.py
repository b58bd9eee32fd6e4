"""A small order intake: copies orders from the spool, and logs far too much at level debug."""

import json
import sys
import time
from pathlib import Path

CONFIG = Path("/etc/orders/ingestd.json")
LOG = Path("/var/log/orders/ingestd.log")
LINE = "DEBUG poll: nothing in the spool, looking again " + "." * 400 + "\n"


def main() -> None:
    level = json.loads(CONFIG.read_text())["log_level"]
    while True:
        try:
            with LOG.open("a") as log:
                log.write(LINE * 4096 if level == "debug" else "")
        except OSError as error:  # the disk is full: say so and go on, as badly behaved programs do
            print(error, file=sys.stderr, flush=True)
        time.sleep(0.02)


main()
