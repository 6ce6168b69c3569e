#!/usr/bin/env python3
"""Puts the load server's pods, their status included, into a real API server: fill.py LIST-URL SERVER-URL CA."""
import http.client
import json
import ssl
import sys
import threading
import urllib.parse
import urllib.request

WORKERS = 8


def send(connection, method, path, body):
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300 and answer.status != 409:
        raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()[:300]}")
    return json.loads(text)


def fill(server, context, pods):
    address = urllib.parse.urlsplit(server)
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=context)
    for pod in pods:
        # What the server gives, it will not be told.
        for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences"):
            pod["metadata"].pop(field, None)
        pod["spec"].pop("serviceAccountName", None)
        pod["spec"].pop("serviceAccount", None)
        pod["spec"].pop("priority", None)
        pod["spec"].pop("priorityClassName", None)
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        created = send(connection, "POST", path, pod)
        created["status"] = pod.get("status", {})
        send(connection, "PUT", f"{path}/{pod['metadata']['name']}/status", created)


def main(source, server, ca):
    pods = json.load(urllib.request.urlopen(source))["items"]
    context = ssl.create_default_context(cafile=ca)
    address = urllib.parse.urlsplit(server)
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=context)
    for namespace in sorted({pod["metadata"]["namespace"] for pod in pods}):
        send(connection, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    failures = []

    def work(share):
        try:
            fill(server, context, share)
        except Exception as e:  # told by the main thread
            failures.append(e)

    threads = [threading.Thread(target=work, args=(pods[i::WORKERS],)) for i in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"fill.py: {failures[0]}")


main(*sys.argv[1:])
