"""A browser, driven by chromedriver's WebDriver over plain HTTP."""

import argparse
import base64
import fcntl
import http.client
import json
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowDown": "\ue015", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowLeft": "\ue012", "Home": "\ue011", "End": "\ue010",
        "PageUp": "\ue00e", "PageDown": "\ue00f", "Tab": "\ue004", "Backspace": "\ue003"}


_locks = []  # locks of ports, held until the process ends


def free_port():
    """A free port that is not assigned again, like free_port() of the C++ tests."""
    taken = pathlib.Path("/tmp/lookout-test-ports")
    taken.mkdir(exist_ok=True)
    while True:
        port = random.randint(10000, 32000)
        lock = open(taken / str(port), "w", encoding="utf-8")
        with socket.socket() as listener:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        _locks.append(lock)
        return port


def eventually(condition, what, seconds=60):
    """The first true value of condition(); fails if there is none in time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("never: " + what)
        time.sleep(0.02)


class Browser:
    """Headless Chromium with a profile of its own."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="lookout-browser-")
        self.port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.session = None
        try:
            eventually(self._is_up, "chromedriver answers")
            options = {"args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", "--window-size=1280,900", "--lang=en",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={self.profile}"]}
            capabilities = {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}
            self.session = self._call("POST", "/session", {"capabilities": capabilities})["sessionId"]
        except BaseException:
            self.close()
            raise

    def close(self):
        try:
            if self.session:
                self._call("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *args):
        """The result of the script (the body of a function)."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def press(self, *keys):
        """Sends keys (names, or single characters) to the focused element."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def click(self, selector):
        element = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{element[ELEMENT]}/click", {})

    def log(self, kind):
        """The log entries since the last call: "browser" (the console) or "performance"."""
        return self.call("POST", "/se/log", {"type": kind})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def call(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def _is_up(self):
        try:
            return self._call("GET", "/status")["ready"]
        except OSError:
            return False

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{path}: {value['error']}: {value['message']}")
        return value


SKIPPED = 77


def run_in_browser(test):
    """The main() of a test: calls test(browser, path of lookout, folder, folder of screenshots).run()."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lookout")
    parser.add_argument("--screenshots", type=pathlib.Path)
    arguments = parser.parse_args()
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            print(f"*** There is no {program} on the PATH: the page is not tested in a browser. ***")
            return SKIPPED
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser()
        try:
            test(browser, arguments.lookout, folder, arguments.screenshots).run()
        finally:
            browser.close()
    return 0
