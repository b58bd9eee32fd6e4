"""An agent that is a service: `agent_service.py 8800`, then `--agent http:http://127.0.0.1:8800`."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Condition, Thread

jobs = {}


class Job:
    def __init__(self, order):
        self.events, self.results, self.news = [], SimpleQueue(), Condition()
        Thread(target=self.work, args=[order], daemon=True).start()

    def tell(self, event, **fields):
        with self.news:
            self.events.append({"event": event, **fields})
            self.news.notify_all()

    def work(self, order):  # the agent: a task a host, one after the other, a command in each
        self.tell("posted", body="I look at every host.")
        for turn, host in enumerate(order["hosts"], start=1):
            task, rules = f"look-{turn}", order["operational_rules"]
            self.tell("task_created", task=task, host=host, turn=turn, operational_rules=rules)
            self.tell("task_started", task=task)
            self.tell("command_requested", task=task, call="1", command="uptime")
            seen = self.results.get()["outcome"]  # a real agent would think about the output
            self.tell("task_ended", task=task, status="completed", summary=seen)
        self.tell("resolved", resolution="no_action", reasoning="I looked and changed nothing.")
        self.tell("job_ended")


class Service(BaseHTTPRequestHandler):
    def do_GET(self):
        if "/events?" not in self.path:
            return self.answer({"format": "opsdrill.agent/1", "name": "looker"})
        _, _, job, rest = self.path.split("/")
        job, after = jobs[job], int(rest.split("=")[1].split("&")[0])
        with job.news:
            job.news.wait_for(lambda: job.events[after:], timeout=10)
            return self.answer({"events": job.events[after:]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/jobs":
            jobs[body["id"]] = jobs.get(body["id"]) or Job(body)
        else:
            jobs[self.path.split("/")[2]].results.put(body)
        self.answer({})

    do_DELETE = do_GET  # noqa: N815 (what a cancelled job is answered does not matter)

    def answer(self, content):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
