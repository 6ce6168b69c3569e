#!/usr/bin/env python3
"""The page of `lookout registry serve` in a browser, with 10,000 instances: the document has only the visible rows.

usage: page_scale_test.py LOOKOUT [--screenshots FOLDER]

Exits with 77 if no browser is available.
"""

import json
import random
import sys

from fake_api import FakeApi
from page_test import Program
from webdriver import eventually, run_in_browser

WEB = 5000
SMALL_SERVICES = 500
PODS_PER_SERVICE = 10
# The view has room for some 15 rows, and there are as many beyond its edges.
MOST_ROWS = 60


def pod(service, index, ready=True, version="v1", weight=1):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": f"{service}-{index:04}", "labels": {
                "kratos-service-app": service, "kratos-service-id": str(index), "kratos-service-version": version,
                "topology.kubernetes.io/zone": "zone-" + "abc"[index % 3]},
                "annotations": {"kratos-service-metadata": json.dumps({"weight": str(weight)})}},
            "spec": {"containers": [{"name": "main", "ports": [{"name": "http", "containerPort": 8000}]}]},
            "status": {"phase": "Running", "podIP": f"10.1.{index // 250}.{index % 250 + 1}", "conditions": [
                {"type": "Ready", "status": str(ready), "message": "" if ready else "the disk is full"}]}}


class ScaleTest:
    def __init__(self, browser, lookout, folder, screenshots):
        self.browser = browser
        self.screenshots = screenshots
        self.api = FakeApi()
        self.web = {f"shop/web-{i:04}": pod("web", i) for i in range(WEB)}
        small = [pod(f"svc-{s:03}", i) for s in range(SMALL_SERVICES) for i in range(PODS_PER_SERVICE)]
        self.api.put([*self.web.values(), *small])
        page = Program(folder, lookout, "--server", self.api.url, "registry", "serve", "-A", "--listen", "127.0.0.1:0")
        self.url = page.url

    # The content of the page.

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0]).textContent", selector)

    def rows(self, of="#instances"):
        return self.browser.run("return document.querySelectorAll(arguments[0] + ' > li').length", of)

    def in_view(self):
        """The visible rows of instances: [pod, state, version]."""
        return self.browser.run("""
            const view = document.getElementById('detail').getBoundingClientRect();
            const head = document.getElementById('head').getBoundingClientRect();
            return [...document.querySelectorAll('#instances > li')].filter((li) => {
                const box = li.getBoundingClientRect();
                return box.bottom > head.bottom && box.top < view.bottom;
            }).map((li) => ['.pod', '.ready', '.version'].map((cell) => li.querySelector(cell).textContent));""")

    def scroll_to(self, part):
        """Scrolls to this fraction of the height."""
        self.browser.run("const d = document.getElementById('detail'); d.scrollTop = arguments[0] * (d.scrollHeight - d.clientHeight)", part)

    def expected(self):
        """The expected rows of "web", in the order of the pods."""
        def state(of):
            if "deletionTimestamp" in of["metadata"]:
                return "Leaving"
            return "Ready" if of["status"]["conditions"][0]["status"] == "True" else "Not ready"
        return [[key, state(of), of["metadata"]["labels"]["kratos-service-version"]] for key, of in sorted(self.web.items())]

    def is_drawn(self, expected=None):
        """The visible rows, at several positions of the list, equal those of `expected`."""
        expected = self.expected() if expected is None else expected
        for part in (0, 0.3, 0.77, 1):
            self.scroll_to(part)

            def right():
                seen = self.in_view()
                if not seen or seen[0] not in expected:
                    return False
                first = expected.index(seen[0])
                at_the_end = seen[-1] == expected[-1] or part < 1
                return at_the_end and (part > 0 or first == 0) and seen == expected[first:first + len(seen)]

            eventually(right, f"the rows at {part} of the list are right")
            assert self.rows() <= MOST_ROWS, self.rows()

    def change(self, pods):
        self.web.update((f'shop/{p["metadata"]["name"]}', p) for p in pods)
        self.api.put(pods)

    def shot(self, name):
        if self.screenshots:
            self.browser.screenshot(str(self.screenshots / f"{name}.png"))

    # The test.

    def run(self):
        self.has_few_rows_in_the_document()
        self.bursts_end_right()
        self.rows_may_go_before_the_next_frame()
        self.draws_once_however_many_updates_come()
        self.the_keyboard_reaches_every_row()
        self.an_address_says_what_is_shown()
        self.states_are_told_apart()
        self.traffic_is_shown()
        self.there_is_a_history()
        self.colours_are_a_choice()
        self.problems_are_shown()
        self.nothing_was_logged()

    def has_few_rows_in_the_document(self):
        self.browser.open(self.url + "/#/web")
        eventually(lambda: self.text("#totals") == "501 services, 10,000 instances", "everything is there")
        assert self.text("#summary").startswith("5,000 instances"), self.text("#summary")
        self.is_drawn()
        assert 0 < self.rows("#services") <= MOST_ROWS, self.rows("#services")
        assert self.browser.run("return document.querySelectorAll('*').length") < 1500

    def rows_may_go_before_the_next_frame(self):
        """A scrolled list is drawn after an update that removes its rows."""
        self.browser.run("""
            const service = services.get('web');
            const [key] = instanceList.rows.keys();
            const instance = service.instances.get(key);
            service.instances.delete(key);
            instanceList.draw(null);
            services.delete('web');
            instanceList.draw(null);
            serviceList.draw(null);
            services.set('web', service);
            service.instances.set(key, instance);
            dirty.all = true;
            schedule();""")
        self.is_drawn()

    def bursts_end_right(self):
        rng = random.Random(1)
        for _ in range(3):
            keys = list(self.web)
            changed = [pod("web", int(key[-4:]), rng.random() < 0.8, f"v{rng.randrange(3)}", rng.randrange(9))
                       for key in rng.sample(keys, 2500)]
            gone = rng.sample(sorted(set(keys) - {f'shop/{p["metadata"]["name"]}' for p in changed}), 200)
            self.change(changed)
            self.api.drop(gone)
            for key in gone:
                del self.web[key]
            came = [pod("web", int(key[-4:]) + 5000, version="new") for key in gone if int(key[-4:]) < 5000][:100]
            self.change(came)
        unready = sum(state == "Not ready" for _, state, _ in self.expected())
        totals = f"501 services, {5000 + len(self.web):,} instances, {unready:,} not ready"
        eventually(lambda: self.text("#totals") == totals, totals)
        self.is_drawn()
        self.shot("scale")

    def draws_once_however_many_updates_come(self):
        """Three updates before a frame: the page draws once, and shows the last of them."""
        seen = self.browser.run("""
            let draws = 0;
            const original = window.draw;
            window.draw = () => { draws++; original(); };
            const update = (version) => ({reset: false, revision: server.revision, synced: true, live: true, since: server.since, error: '',
              gone: [], services: [{name: 'one-frame', drop: [], put: [{id: '1', name: 'one-frame', version, metadata: {},
              endpoints: ['http://10.0.0.1:80'], pod: 'shop/one', zone: '', ready: true}]}]});
            for (const version of ['a', 'b', 'c']) take(update(version));
            const before = draws;
            window.frames = new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
              window.draw = original;
              done([before, draws, services.get('one-frame').instances.get('shop/one').version]);
            })));""")
        assert seen is None
        result = self.browser.devtools("Runtime.evaluate", expression="window.frames", awaitPromise=True, returnByValue=True)
        assert result["result"]["value"] == [0, 1, "c"], result
        self.browser.run("removeService('one-frame'); schedule()")

    def the_keyboard_reaches_every_row(self):
        press = self.browser.press
        pods = sorted(self.web)
        focused = lambda: self.browser.run("""
            const e = document.activeElement;
            const label = e.querySelector('.name, .pod');
            return label ? label.textContent : e.id""")
        self.scroll_to(0)
        self.browser.run("serviceList.focus('web')")
        press("Enter")
        eventually(lambda: focused() == pods[0], "the first instance has the focus")
        press("End")
        assert focused() == pods[-1], focused()
        press("ArrowUp", "ArrowUp")
        assert focused() == pods[-3], focused()
        press("Home", "ArrowDown")
        assert focused() == pods[1], focused()
        press("PageDown")
        assert focused() in pods[8:40], focused()
        assert self.rows() <= MOST_ROWS, self.rows()
        place = self.browser.run("const row = document.activeElement.closest('li'); return [row.ariaPosInSet, row.ariaSetSize]")
        assert place == [str(pods.index(focused()) + 1), str(len(pods))], place
        # The focused row stays in the document while the list is scrolled.
        here = focused()
        self.scroll_to(1)
        eventually(lambda: [row[0] for row in self.in_view()[-1:]] == pods[-1:], "the end is in view")
        assert focused() == here, focused()
        # When its pod is deleted, its neighbour gets the focus.
        self.api.drop([here])
        del self.web[here]
        eventually(lambda: focused() == pods[pods.index(here) + 1], "the neighbour has the focus")
        press("Escape")
        assert focused() == "web", focused()
        press("Home")
        assert focused() == "svc-000", focused()

    def an_address_says_what_is_shown(self):
        key = sorted(self.web)[2000]
        self.browser.run("go({query: arguments[0]}, false)", key)
        eventually(lambda: [row[0] for row in self.in_view()] == [key], "only the instance that is searched for")
        link = self.browser.run("return location.hash")
        self.browser.open("about:blank")
        self.browser.open(self.url + "/" + link)
        eventually(lambda: [row[0] for row in self.in_view()] == [key], "a link with a search")
        assert self.browser.run("return document.getElementById('query').value") == key
        # Another order, with a filter.
        self.browser.open(self.url + "/#/web?show=not-ready&sort=-version&order=size")
        expected = [row for row in self.expected() if row[1] != "Ready"]
        expected = sorted(expected, key=lambda row: row[2])[::-1]
        by_version = lambda rows: [row[2] for row in rows]
        eventually(lambda: by_version(self.in_view()[:3]) == by_version(expected[:3]), "the last version comes first")
        assert all(row[1] == "Not ready" for row in self.in_view()), self.in_view()
        assert self.browser.run("return document.getElementById('unready').checked")
        assert self.browser.run("return serviceList.keys[0]") == "web", "the largest service is the first"
        # Navigation back, and unknown words.
        self.browser.run("location.hash = '#/svc-007'")
        eventually(lambda: self.text("#title") == "svc-007", "another service")
        self.browser.run("history.back()")
        eventually(lambda: self.text("#title") == "web", "back")
        for strange in ("#/%E0%A4%A", "#/?sort=constructor&order=__proto__&view=x&q=%", "#nothing", "#/no/such?service"):
            self.browser.run("location.hash = arguments[0]", strange)
            eventually(lambda: self.text("#title") in ("No service chosen", "no/such"), strange)
        self.browser.run("location.hash = '#/web'")
        eventually(lambda: self.rows() > 0, "the service again")

    def states_are_told_apart(self):
        leaving, unready = (self.web[key] for key in sorted(self.web)[:2])
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        unready["status"]["conditions"][0].update(status="False", message="the disk is full")
        self.change([leaving, unready])
        self.scroll_to(0)
        eventually(lambda: [row[1] for row in self.in_view()[:2]] == ["Leaving", "Not ready"], "one is leaving, one not ready")
        row = "#instances > li:nth-child(2) .pairs"
        eventually(lambda: self.text(row) == "the disk is full", "it says why it is not ready")
        eventually(lambda: "1 leaving" in self.text("#totals"), "the top says so, too")

    def traffic_is_shown(self):
        first, second = [key for key, state, _ in self.expected() if state == "Ready"][:2]
        assert not self.browser.run("return document.documentElement.classList.contains('traffic')")
        self.browser.run("""
            const [first, second] = arguments;
            take({reset: false, revision: server.revision, synced: true, live: true, since: server.since, error: '', gone: [], services: [],
              traffic: {asked: 2, answered: 2, services: {web: {all: [42, 1.5, 1, 2], instances: {[first]: [40, 0, 0, 2], [second]: [2, 1.5, 1, 2]}}}}});""",
            first, second)
        eventually(lambda: "42 picks/s, 1.5 errors/s" in self.text("#summary"), "picks and errors of the service")
        rows = dict(self.browser.run("""
            return [...document.querySelectorAll('#instances > li')].map((li) =>
                [li.querySelector('.pod').textContent, ['.ready', '.picks', '.pairs'].map((cell) => li.querySelector(cell).textContent)])"""))
        assert rows[first][:2] == ["Ready", "40"], rows[first]
        assert rows[second] == ["Ejected", "2, 1.5 fail", "ejected by 1 of 2 callers"], rows[second]
        self.browser.click("[data-sort=picks]")
        eventually(lambda: [row[0] for row in self.in_view()[:2]] == [first, second], "the busiest first")
        self.browser.click("[data-sort=pod]")

    def there_is_a_history(self):
        key = sorted(self.web)[0]
        self.browser.click("[data-view=changes]")
        events = lambda: self.browser.run("""
            return [...document.querySelectorAll('.change')].slice(0, 2).map((li) => [li.querySelector('.pod').textContent, li.querySelector('.event').textContent])""")
        eventually(lambda: [key, "Leaving"] in events(), "that it is leaving")
        assert self.browser.run("return location.hash").endswith("view=changes")
        self.api.drop([key])
        del self.web[key]
        eventually(lambda: events()[0] == [key, "Left"], "that it has left, without being asked again")
        assert self.browser.run("return document.querySelectorAll('.change').length") <= 50
        self.shot("scale-changes")
        self.browser.click("[data-view=instances]")
        eventually(lambda: [row[0] for row in self.in_view()[:1]] == sorted(self.web)[:1], "the instances again")

    def colours_are_a_choice(self):
        ground = lambda: self.browser.run("return getComputedStyle(document.body).backgroundColor")
        prefer = lambda scheme: self.browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        prefer("light")
        light = ground()
        prefer("dark")
        dark = ground()
        assert light != dark, light
        self.browser.click("#theme")
        assert ground() == light, "light, whatever the system has"
        self.browser.open("about:blank")
        self.browser.open(self.url + "/#/web")
        assert ground() == light, "the choice is kept"
        prefer("light")
        self.browser.click("#theme")
        assert ground() == dark, "dark, whatever the system has"
        self.shot("scale-dark")
        self.browser.click("#theme")
        assert ground() == light, "as the system has it"

    def problems_are_shown(self):
        broken = pod("svc-000", 99)
        broken["metadata"]["annotations"]["kratos-service-metadata"] = '{"a": <b>}'
        self.api.put([broken])
        eventually(lambda: "shop/svc-000-0099" in self.text("#problems-list"), "a malformed pod by its name")
        self.browser.run("location.hash = '#/svc-000'")
        eventually(lambda: "shop/svc-000-0099: annotation kratos-service-metadata" in self.text("#trouble"), "its service says so, too")
        self.browser.run("document.getElementById('problems').open = true")
        self.shot("scale-problems")
        self.api.put([pod("svc-000", 99)])
        eventually(lambda: self.browser.run("return document.getElementById('problems').hidden"), "it has been repaired")
        # The server forbids reading pods.
        self.api.refuse(True)
        eventually(lambda: "403" in self.text("#problems-list"), "it is forbidden")
        eventually(lambda: "is forbidden" in self.text("#banner"), "the data is stale because of that")
        self.api.refuse(False)
        eventually(lambda: self.browser.run("return document.documentElement.dataset.state") == "live", "it is live again")
        eventually(lambda: self.browser.run("return document.getElementById('problems').hidden"), "no problem is left")

    def nothing_was_logged(self):
        errors = [entry for entry in self.browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        assert not errors, errors


if __name__ == "__main__":
    sys.exit(run_in_browser(ScaleTest))
