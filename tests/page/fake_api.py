"""An API server with a test's pods, without rate limits: GET and watch only."""

import http.server
import json
import socketserver
import threading
import urllib.parse


class FakeApi:
    """Pods by "namespace/name". The test changes them with put() and drop(), which notify watchers."""

    def __init__(self):
        self.pods = {}
        self.events = []  # the n-th has the resourceVersion n + 1
        self.refusing = False
        self.changed = threading.Condition()
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.api = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def put(self, pods):
        with self.changed:
            for pod in pods:
                meta = pod["metadata"]
                key = f'{meta["namespace"]}/{meta["name"]}'
                meta["resourceVersion"] = str(len(self.events) + 1)
                kind = "MODIFIED" if key in self.pods else "ADDED"
                # (As text, so that later changes of the pod do not change earlier events.)
                self.pods[key] = json.dumps(pod)
                self.events.append(f'{{"type":"{kind}","object":{self.pods[key]}}}\n')
            self.changed.notify_all()

    def drop(self, keys):
        with self.changed:
            for key in keys:
                pod = json.loads(self.pods.pop(key))
                pod["metadata"]["resourceVersion"] = str(len(self.events) + 1)
                self.events.append(f'{{"type":"DELETED","object":{json.dumps(pod)}}}\n')
            self.changed.notify_all()

    def refuse(self, refusing):
        """Rejects requests with 403 and ends watches, or stops to do so."""
        with self.changed:
            self.refusing = refusing
            self.changed.notify_all()

    def close(self):
        self.server.shutdown()


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        api = self.server.api
        if not url.path.endswith("/pods"):
            self._status(404, "NotFound", "there are only pods")
        elif api.refusing:
            self._status(403, "Forbidden", 'pods is forbidden: User "page" cannot list resource "pods"')
        elif query.get("sendInitialEvents") == "true":
            self._status(422, "Invalid", "sendInitialEvents: Forbidden")
        elif query.get("watch") in ("true", "1"):
            self._watch(int(query.get("resourceVersion") or 0))
        else:
            self._list()

    def _status(self, code, reason, message):
        self._send(code, json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                                     "message": message, "code": code}))

    def _list(self):
        api = self.server.api
        with api.changed:
            items = ",".join(api.pods.values())
            version = len(api.events)
        self._send(200, f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}')

    def _send(self, code, text):
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, known):
        api = self.server.api
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                with api.changed:
                    api.changed.wait_for(lambda: len(api.events) > known or api.refusing)
                    if api.refusing:
                        return
                    news = "".join(api.events[known:])
                    known = len(api.events)
                self.wfile.write(news.encode())
                self.wfile.flush()
        except OSError:
            pass
