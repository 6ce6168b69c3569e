#!/usr/bin/env python3
"""The page of `lookout registry serve` in a browser, with 2,000 instances that change.

usage: page_test.py LOOKOUT [--screenshots FOLDER]

Exits with 77 if no browser is available.
"""

import atexit
import contextlib
import http.client
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from webdriver import eventually, free_port, run_in_browser

SERVICES = 20
PODS_PER_SERVICE = 100
PODS = [(f"svc-{s:02}", f"svc-{s:02}-{p:03}") for s in range(SERVICES) for p in range(PODS_PER_SERVICE)]
CHANGES = 5000
WRITERS = 3

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>&amp;"\'`</script>'


class Program:
    """The lookout program under test."""

    def __init__(self, folder, lookout, *arguments):
        handle, self.log = tempfile.mkstemp(dir=folder, suffix=".log")
        with open(handle, "wb") as log:
            self.process = subprocess.Popen([lookout, *arguments], stdout=log, stderr=subprocess.STDOUT)
        atexit.register(self.kill)
        self.url = eventually(self._url, "lookout says where it serves").rstrip("/")

    def output(self):
        return pathlib.Path(self.log).read_text()

    def end(self, number=signal.SIGTERM):
        """Sends a signal; returns the exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=30)

    def kill(self):
        """Kills the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _url(self):
        assert self.process.poll() is None, self.output()
        found = re.search(r" at (http://[^\s,]+)", self.output())
        return found and found.group(1)


class Proxy:
    """Between the registry and the API server: a network that can be cut."""

    def __init__(self, port):
        self.target = port
        self.port = free_port()
        self.connections = []
        self.mend()

    def mend(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def cut(self):
        # (A socket that is only closed would stay open for the thread that waits for it.)
        for connection in [self.listener, *self.connections]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self.connections.clear()

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                ends = [listener.accept()[0], socket.create_connection(("127.0.0.1", self.target))]
                self.connections += ends
                for source, target in (ends, ends[::-1]):
                    threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    @staticmethod
    def _pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


class Api:
    """A client of the API server, for one thread."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)

    def call(self, method, path, body=None, kind="application/json"):
        self.connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
        response = self.connection.getresponse()
        text = response.read()
        assert response.status < 300, f"{method} {path}: {response.status} {text}"
        return json.loads(text)

    def patch(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def create(self, service, name, index):
        self.call("POST", "/api/v1/namespaces/default/pods", {
            "metadata": {"name": name, "labels": {
                "kratos-service-app": service, "kratos-service-id": name, "kratos-service-version": "v1",
                "topology.kubernetes.io/zone": "zone-" + "abc"[index % 3]},
                "annotations": {"kratos-service-protocols": '{"8000":"http","9000":"grpc"}',
                                "kratos-service-metadata": json.dumps({"weight": str(index % 7)})}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "main", "image": "i", "ports": [{"containerPort": 8000}, {"containerPort": 9000}]}]}})
        self.status(name, index, True)

    def status(self, name, index, ready):
        self.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": {
            "phase": "Running", "podIP": f"10.1.{index // 250}.{index % 250 + 1}",
            "conditions": [{"type": "Ready", "status": str(ready)}]}})

    def expected(self):
        """The expected content of the page, computed from the pods: service -> pod -> [ready, version, zone, endpoints]."""
        out = {}
        for pod in self.call("GET", "/api/v1/pods?labelSelector=kratos-service-app")["items"]:
            labels = pod["metadata"]["labels"]
            ready = pod["status"]["conditions"][0]["status"] == "True"
            address = pod["status"]["podIP"]
            out.setdefault(labels["kratos-service-app"], {})["default/" + pod["metadata"]["name"]] = [
                "Ready" if ready else "Not ready", labels["kratos-service-version"],
                labels["topology.kubernetes.io/zone"], f"http://{address}:8000\ngrpc://{address}:9000"]
        return out


def in_threads(work):
    """Runs work(0) to work(WRITERS - 1) concurrently; raises their exceptions."""
    failures = []

    def guarded(number):
        try:
            work(number)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def create_pods(url):
    def create(number):
        api = Api(url)
        for index in range(number, len(PODS), WRITERS):
            api.create(*PODS[index], index)

    in_threads(create)


def change_pods(url):
    """Changes of readiness, versions and annotations; pods that are deleted and recreated, or move to another service."""
    def change(number):
        api = Api(url)
        rng = random.Random(number)
        mine = [(index, *PODS[index]) for index in range(number, len(PODS), WRITERS)]
        for _ in range(CHANGES // WRITERS):
            index, service, name = rng.choice(mine)
            path = f"/api/v1/namespaces/default/pods/{name}"
            kind = rng.randrange(10)
            if kind < 5:
                api.status(name, index, rng.random() < 0.5)
            elif kind < 7:
                api.patch(path, {"metadata": {"labels": {"kratos-service-version": f"v{rng.randrange(4)}"}}})
            elif kind < 8:
                api.patch(path, {"metadata": {"labels": {"kratos-service-app": f"svc-{rng.randrange(SERVICES):02}"}}})
            elif kind < 9:
                api.patch(path, {"metadata": {"annotations": {
                    "kratos-service-metadata": json.dumps({"weight": str(rng.randrange(100))})}}})
            else:
                api.call("DELETE", path + "?gracePeriodSeconds=0")
                api.create(service, name, index)

    in_threads(change)


class PageTest:
    def __init__(self, browser, lookout, folder, screenshots):
        self.browser = browser
        self.lookout = lookout
        self.folder = folder
        self.screenshots = screenshots

    # The content of the page.

    def state(self):
        return self.browser.run("return document.documentElement.dataset.state")

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0]).textContent", selector)

    def totals(self):
        return self.text("#totals")

    def services(self):
        """Name -> count in the list."""
        return dict(self.browser.run("""
            return [...document.querySelectorAll('#services a')].map(
                (a) => [a.querySelector('.name').textContent, a.querySelector('.count').textContent])"""))

    def instances(self):
        """Pod -> its row, for the open service."""
        return dict(self.browser.run("""
            return [...document.querySelectorAll('#instances > li')].map((li) => {
                const cell = (name) => li.querySelector('.' + name).textContent;
                return [cell('pod'), [cell('ready'), cell('version'), cell('zone'), cell('endpoints')]];
            })"""))

    def focused(self):
        """The name or pod of the row that has the focus, or the id of another element."""
        return self.browser.run("""
            const e = document.activeElement;
            const label = e.querySelector('.name, .pod');
            return label ? label.textContent : e.id""")

    def open(self, service):
        """Opens a service; keeps the search."""
        self.browser.run("go({service: arguments[0]})", service)

    def tall(self):
        """Makes the window so tall that all rows are visible, and thus in the document."""
        self.browser.devtools("Emulation.setDeviceMetricsOverride", width=1280, height=8000, deviceScaleFactor=1, mobile=False)
        eventually(lambda: self.browser.run("return innerHeight") == 8000, "the window is tall")
        # Rows that become visible are drawn in the next frame.
        self.browser.run("window.drawn = false; requestAnimationFrame(() => requestAnimationFrame(() => window.drawn = true))")
        eventually(lambda: self.browser.run("return window.drawn"), "the rows are drawn")

    def shows(self, expected):
        counts = {name: f"{sum(i[0] == 'Ready' for i in pods.values())}" for name, pods in expected.items()}
        shown = {name: re.split(r"[/ ]", count)[0] for name, count in self.services().items()}
        return shown == counts

    def shot(self, name):
        if self.screenshots:
            self.browser.screenshot(str(self.screenshots / f"{name}.png"))

    def look(self, name, width=1280, height=860, dark=False):
        """Takes a screenshot with other settings."""
        if not self.screenshots:
            return
        self.browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                              deviceScaleFactor=2 if width < 500 else 1, mobile=width < 500)
        self.browser.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        time.sleep(0.4)
        self.shot(name)
        self.browser.devtools("Emulation.setEmulatedMedia", features=[])
        self.tall()

    # The test.

    def run(self):
        api = Program(self.folder, self.lookout, "serve", "--listen", "127.0.0.1:0")
        create_pods(api.url)
        self.proxy = Proxy(urllib.parse.urlsplit(api.url).port)
        page = Program(self.folder, self.lookout, "--server", f"http://127.0.0.1:{self.proxy.port}", "registry", "serve",
                       "--listen", "127.0.0.1:0")
        self.page_url = page.url
        self.shows_all_there_is()
        self.follows_2000_instances_that_change(api.url)
        self.is_searched()
        self.is_used_with_the_keyboard()
        self.text_is_never_markup(api.url)
        self.a_phone_has_one_column()
        self.says_when_it_is_stale(api)
        self.says_when_its_own_server_is_gone(page)
        self.has_asked_nobody_else_and_logged_no_error()

    def shows_all_there_is(self):
        # Ignore the log of the browser's initial page.
        self.browser.open("about:blank")
        self.browser.log("performance")
        self.tall()
        self.browser.open(self.page_url + "/")
        eventually(lambda: self.totals() == "20 services, 2,000 instances", "everything is there")
        assert self.state() == "live", self.state()
        assert self.services()["svc-07"] == "100 ready", self.services()

    def follows_2000_instances_that_change(self, url):
        # The longest time between two frames while everything changes.
        self.browser.run("""
            window.slowest = 0;
            let last = performance.now();
            const frame = (now) => {
              window.slowest = Math.max(window.slowest, now - last);
              last = now;
              window.following = requestAnimationFrame(frame);
            };
            requestAnimationFrame(frame);""")
        self.look("empty")
        self.open("svc-03")
        begin = time.monotonic()
        change_pods(url)
        took = time.monotonic() - begin
        expected = Api(url).expected()
        eventually(lambda: self.shows(expected), "the list shows the final state")
        slowest = self.browser.run("cancelAnimationFrame(window.following); return window.slowest")
        print(f"{CHANGES} changes in {took:.1f} s; longest time between two frames: {slowest:.0f} ms")
        for name in expected:
            self.open(name)
            eventually(lambda: self.instances() == expected[name], f"{name} shows its final state")
        assert sum(len(pods) for pods in expected.values()) == len(PODS)
        unready = sum(i[0] != "Ready" for pods in expected.values() for i in pods.values())
        assert self.totals() == f"20 services, 2,000 instances, {unready} not ready", self.totals()
        for dark in (False, True):
            self.look("desktop-" + ("dark" if dark else "light"), dark=dark)
        self.expected = expected

    def search(self, text):
        self.browser.run("document.activeElement.blur()")
        self.browser.press("/")
        assert self.focused() == "query", self.focused()
        self.browser.press(*text)

    def is_searched(self):
        name, pods = next(iter(self.expected.items()))
        pod, row = next(iter(pods.items()))
        self.search(pod.split("/")[1])
        eventually(lambda: list(self.services()) == [name], "only the service of the pod that is searched for")
        self.open(name)
        eventually(lambda: list(self.instances()) == [pod], "only the pod that is searched for")
        eventually(lambda: self.text("#found") == "1 service, 1 instance found", "the result is announced")
        self.look("search")
        self.browser.press("Escape")
        eventually(lambda: len(self.services()) == SERVICES, "Escape clears the search")
        # Words match anywhere, and all of them must match.
        self.search("zone-b v3 svc-05")
        wanted = {p for p, i in self.expected["svc-05"].items() if i[1] == "v3" and i[2] == "zone-b"}
        self.open("svc-05")
        eventually(lambda: set(self.instances()) == wanted, "instances with all words")
        self.browser.press("Escape")
        self.browser.click("#unready")
        wanted = {p for p, i in self.expected["svc-05"].items() if i[0] != "Ready"}
        eventually(lambda: set(self.instances()) == wanted, "instances that are not ready")
        self.browser.click("#unready")
        eventually(lambda: set(self.instances()) == set(self.expected["svc-05"]), "all instances again")
        self.search("nothing like this")
        eventually(lambda: self.text("#no-services") == "Nothing matches this search.", "it says that nothing matches")
        self.browser.press("Escape")

    def is_used_with_the_keyboard(self):
        press, focused = self.browser.press, self.focused
        self.browser.open(self.page_url + "/")
        eventually(lambda: len(self.services()) == SERVICES, "the page is there again")
        # In reading order: search, filter, list, instances.
        self.browser.run("document.getElementById('query').focus()")
        press("Tab")
        assert focused() == "unready", focused()
        press("Tab")
        assert focused() == "order", focused()
        press("Tab")
        assert focused() == "svc-00", focused()
        press("ArrowDown", "ArrowDown", "ArrowUp")
        assert focused() == "svc-01", focused()
        press("End")
        assert focused() == "svc-19", focused()
        press("Home", "ArrowDown", "Enter")
        pods = sorted(self.expected["svc-01"])
        eventually(lambda: self.text("#title") == "svc-01" and focused() == pods[0], "the service is open")
        press("ArrowDown", "Enter")
        eventually(lambda: self.browser.run("return !!document.querySelector('details[open] dl')"), "an instance is open")
        assert "weight" in self.text("details[open] dl")
        self.look("instance")
        self.look("instance-dark", dark=True)
        assert focused() == pods[1], focused()
        press("Escape")
        assert focused() == "svc-01", focused()
        # Typed without waiting for results.
        pod = max(self.expected["svc-13"])
        press("/", *pod.split("/")[1], "Enter", "Enter")
        eventually(lambda: self.text("#title") == "svc-13" and focused() == pod, "what was found is open")
        press("/", "Escape")
        eventually(lambda: len(self.services()) == SERVICES, "the whole list")

    def text_is_never_markup(self, url):
        api = Api(url)
        api.create("svc-00", "hostile", 2500)
        api.patch("/api/v1/namespaces/default/pods/hostile", {"metadata": {"annotations": {
            "kratos-service-metadata": json.dumps({HOSTILE: HOSTILE, "__proto__": "p"}),
            "kratos-service-protocols": json.dumps({"8000": HOSTILE})}}})
        self.open("svc-00")
        row = lambda: self.instances().get("default/hostile", ["", "", "", ""])
        eventually(lambda: HOSTILE in row()[3], "the hostile text is shown as it is")
        self.browser.run("""
            for (const li of document.querySelectorAll('#instances > li'))
              if (li.querySelector('.pod').textContent === 'default/hostile') {
                li.querySelector('details').open = true;
                li.scrollIntoView();
              }""")
        eventually(lambda: self.browser.run("return !!document.querySelector('details[open] dl')"), "it is open")
        assert HOSTILE in self.text("details[open] dl")
        assert self.browser.run("return document.querySelectorAll('main img, main script').length") == 0
        assert self.browser.run("return window.hacked === undefined && ({}).p === undefined")
        self.look("hostile")
        api.call("DELETE", "/api/v1/namespaces/default/pods/hostile?gracePeriodSeconds=0")
        eventually(lambda: "default/hostile" not in self.instances(), "it is gone")

    def a_phone_has_one_column(self):
        wide = "return document.scrollingElement.scrollWidth <= innerWidth"
        shown = "return getComputedStyle(document.querySelector(arguments[0])).display !== 'none'"
        self.browser.devtools("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
        self.browser.run("location.hash = ''")
        eventually(lambda: self.browser.run(shown, "nav") and not self.browser.run(shown, "#detail"), "the list alone")
        assert self.browser.run(wide), "nothing sticks out"
        self.shot("phone-list")
        self.browser.run("document.querySelector('#services a').click()")
        eventually(lambda: self.browser.run(shown, "#detail") and not self.browser.run(shown, "nav"), "the service alone")
        eventually(lambda: self.text("#summary").startswith(f"{len(self.expected['svc-00'])} instances"), "its instances")
        assert self.browser.run(wide), "nothing sticks out"
        self.shot("phone-service")
        self.browser.run("const d = document.querySelector('#instances details'); d.open = true")
        time.sleep(0.2)
        self.shot("phone-instance")
        self.browser.run("document.getElementById('back').click()")
        eventually(lambda: self.browser.run(shown, "nav"), "the list again")
        self.look("phone-dark", 390, 844, True)
        self.tall()

    def says_when_it_is_stale(self, api):
        before = self.services()
        self.proxy.cut()
        eventually(lambda: self.state() == "stale", "it says that it is stale")
        since = self.text("#state")
        assert re.fullmatch(r"Stale since \d\d:\d\d:\d\d", since), since
        assert "The API server cannot be reached" in self.text("#banner")
        assert self.services() == before, "what was known last is shown"
        self.open("svc-02")
        self.look("stale")
        self.look("stale-phone", 390, 844)
        assert self.text("#state") == since, "it has been stale since one moment"
        Api(api.url).create("cart", "cart-1", 1)
        self.proxy.mend()
        eventually(lambda: self.state() == "live", "it is live again")
        eventually(lambda: self.services() == before | {"cart": "1 ready"}, "what it has missed is there")
        assert self.browser.run("return document.getElementById('banner').hidden")
        api.end(signal.SIGKILL)
        eventually(lambda: self.state() == "stale", "it says that it is stale again")

    def says_when_its_own_server_is_gone(self, page):
        before = self.services()
        assert page.end() == 0, page.output()
        eventually(lambda: self.state() == "disconnected", "it says that it is disconnected")
        assert self.services() == before, "what was known last is shown"

    def has_asked_nobody_else_and_logged_no_error(self):
        urls = set()
        for entry in self.browser.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.add(message["params"]["request"]["url"])
        own = {self.page_url + path for path in ("/", "/api/events")}
        others = {url for url in urls if url.split("#")[0] not in own and not url.startswith("data:")}
        assert not others, others
        errors = [entry for entry in self.browser.log("browser")
                  if entry["level"] in ("SEVERE", "WARNING") and "ERR_" not in entry["message"]]
        assert not errors, errors


if __name__ == "__main__":
    sys.exit(run_in_browser(PageTest))
