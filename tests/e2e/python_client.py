#!/usr/bin/env python3
"""The Kubernetes client for Python against an API server: list, watch, create, change, apply, delete,
and leases as leader election uses them.

usage: python_client.py KUBECONFIG
"""

import datetime
import json
import queue
import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "default"
PATIENCE = 30  # seconds for something to happen


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def fails_with(code, reason, call, *arguments, **named):
    """The call must end with this failure."""
    try:
        call(*arguments, **named)
    except ApiException as failure:
        check(failure.status == code, f"{failure.status} instead of {code}: {failure.body}")
        check(reason in failure.body, f"no {reason} in {failure.body}")
        return
    raise AssertionError(f"{call.__name__} works, and should not")


def config_map(name, value, labels=None):
    return client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name=name, labels=labels), data={"key": value}
    )


def objects(core):
    created = core.create_namespaced_config_map(NAMESPACE, config_map("a", "1", {"app": "web"}))
    check(created.metadata.uid and created.metadata.resource_version, "no identity")
    fails_with(409, "AlreadyExists", core.create_namespaced_config_map, NAMESPACE,
               config_map("a", "1"))
    read = core.read_namespaced_config_map("a", NAMESPACE)
    check(read.data == {"key": "1"}, read.data)
    read.data["key"] = "2"
    replaced = core.replace_namespaced_config_map("a", NAMESPACE, read)
    check(replaced.metadata.resource_version != read.metadata.resource_version, "same version")
    fails_with(409, "Conflict", core.replace_namespaced_config_map, "a", NAMESPACE, read)
    patched = core.patch_namespaced_config_map(
        "a", NAMESPACE, {"metadata": {"labels": {"tier": "front"}}, "data": {"more": "x"}}
    )
    check(patched.metadata.labels == {"app": "web", "tier": "front"}, patched.metadata.labels)
    check(patched.data == {"key": "2", "more": "x"}, patched.data)
    patched = core.patch_namespaced_config_map(
        "a", NAMESPACE, [{"op": "remove", "path": "/data/more"}]
    )
    check(patched.data == {"key": "2"}, patched.data)
    fails_with(422, "Invalid", core.create_namespaced_config_map, NAMESPACE,
               config_map("Not A Name", "1"))
    core.delete_namespaced_config_map("a", NAMESPACE)
    fails_with(404, "NotFound", core.read_namespaced_config_map, "a", NAMESPACE)


def lists(core):
    for i in range(5):
        core.create_namespaced_config_map(
            NAMESPACE, config_map(f"list-{i}", "x", {"list": "yes", "even": str(i % 2 == 0)})
        )
    found = core.list_namespaced_config_map(NAMESPACE, label_selector="list=yes,even=True")
    check([o.metadata.name for o in found.items] == ["list-0", "list-2", "list-4"], found)
    found = core.list_config_map_for_all_namespaces(field_selector="metadata.name=list-3")
    check(len(found.items) == 1, found)
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(
            NAMESPACE, label_selector="list=yes", limit=2, _continue=token
        )
        names += [o.metadata.name for o in page.items]
        token = page.metadata._continue
        if not token:
            break
    check(names == [f"list-{i}" for i in range(5)], names)
    fails_with(400, "BadRequest", core.list_namespaced_config_map, NAMESPACE,
               label_selector="a in (")
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="list=yes")
    check(not core.list_namespaced_config_map(NAMESPACE, label_selector="list=yes").items, "left")


def watches(core):
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    seen = queue.Queue()

    def follow():
        stream = watch.Watch()
        for event in stream.stream(core.list_namespaced_config_map, NAMESPACE,
                                   label_selector="watch=yes", resource_version=version,
                                   timeout_seconds=PATIENCE):
            seen.put((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                stream.stop()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    core.create_namespaced_config_map(NAMESPACE, config_map("other", "1"))
    core.create_namespaced_config_map(NAMESPACE, config_map("w", "1", {"watch": "yes"}))
    core.patch_namespaced_config_map("w", NAMESPACE, {"data": {"key": "2"}})
    core.patch_namespaced_config_map("w", NAMESPACE, {"metadata": {"labels": {"watch": "no"}}})
    events = [seen.get(timeout=PATIENCE) for _ in range(3)]
    check(events == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")], events)
    follower.join(PATIENCE)
    check(not follower.is_alive(), "the watch goes on")
    for name in ("other", "w"):
        core.delete_namespaced_config_map(name, NAMESPACE)


def leases(coordination):
    """Many candidates, one leader: a write based on an old version is rejected."""
    coordination.create_namespaced_lease(
        NAMESPACE,
        client.V1Lease(
            metadata=client.V1ObjectMeta(name="leader"),
            spec=client.V1LeaseSpec(holder_identity="", lease_duration_seconds=15,
                                    lease_transitions=0),
        ),
    )
    for turn in range(5):
        read = [coordination.read_namespaced_lease("leader", NAMESPACE) for _ in range(4)]
        winners = []

        def run_for_it(candidate, lease):
            lease.spec.holder_identity = candidate
            lease.spec.renew_time = datetime.datetime.now(datetime.timezone.utc)
            lease.spec.lease_transitions += 1
            try:
                coordination.replace_namespaced_lease("leader", NAMESPACE, lease)
                winners.append(candidate)
            except ApiException as failure:
                check(failure.status == 409, failure.body)

        candidates = [
            threading.Thread(target=run_for_it, args=(f"candidate-{i}", lease))
            for i, lease in enumerate(read)
        ]
        for candidate in candidates:
            candidate.start()
        for candidate in candidates:
            candidate.join()
        check(len(winners) == 1, winners)
        lease = coordination.read_namespaced_lease("leader", NAMESPACE)
        check(lease.spec.holder_identity == winners[0], lease.spec)
        check(lease.spec.lease_transitions == turn + 1, lease.spec)
        check(lease.spec.renew_time is not None, "no time")


def workloads(apps):
    apps.create_namespaced_deployment(
        NAMESPACE,
        client.V1Deployment(
            metadata=client.V1ObjectMeta(name="web"),
            spec=client.V1DeploymentSpec(
                replicas=1,
                selector=client.V1LabelSelector(match_labels={"app": "web"}),
                template=client.V1PodTemplateSpec(
                    metadata=client.V1ObjectMeta(labels={"app": "web"}),
                    spec=client.V1PodSpec(
                        containers=[client.V1Container(name="main", image="nginx:1")]
                    ),
                ),
            ),
        ),
    )
    scale = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}})
    check(scale.spec.replicas == 3, scale)
    deployment = apps.read_namespaced_deployment("web", NAMESPACE)
    check(deployment.spec.replicas == 3, deployment.spec)
    deployment.status.replicas = 3
    apps.replace_namespaced_deployment_status("web", NAMESPACE, deployment)
    check(apps.read_namespaced_deployment_status("web", NAMESPACE).status.replicas == 3, "status")
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")
    fails_with(404, "NotFound", apps.read_namespaced_deployment, "web", NAMESPACE)


def custom_resources(api):
    client.ApiextensionsV1Api(api).create_custom_resource_definition(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "tabs.shop.example"},
            "spec": {
                "group": "shop.example",
                "scope": "Namespaced",
                "names": {"plural": "tabs", "singular": "tab", "kind": "Tab"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                ],
            },
        }
    )
    # The dynamic client discovers the resources.
    tabs = dynamic.DynamicClient(api).resources.get(api_version="shop.example/v1", kind="Tab")
    tabs.create(
        namespace=NAMESPACE,
        body={"apiVersion": "shop.example/v1", "kind": "Tab", "metadata": {"name": "mine"},
              "spec": {"size": 1}},
    )
    patched = tabs.patch(namespace=NAMESPACE, name="mine", body={"spec": {"size": 2}},
                         content_type="application/merge-patch+json")
    check(patched.spec.size == 2, patched)
    found = client.CustomObjectsApi(api).list_namespaced_custom_object(
        "shop.example", "v1", NAMESPACE, "tabs"
    )
    check([o["metadata"]["name"] for o in found["items"]] == ["mine"], found)
    applied_custom_resources(tabs)
    tabs.delete(namespace=NAMESPACE, name="mine")
    check(not tabs.get(namespace=NAMESPACE).items, "left")


def apply(resource, body, manager, **options):
    # Older versions of the client do not encode dicts for this content type; all accept text.
    return resource.server_side_apply(json.dumps(body), name=body["metadata"]["name"],
                                      namespace=NAMESPACE, field_manager=manager, **options)


def applied_custom_resources(tabs):
    apply(tabs, {"apiVersion": "shop.example/v1", "kind": "Tab", "metadata": {"name": "mine"},
                 "spec": {"color": "red"}}, "painter")
    mine = tabs.get(namespace=NAMESPACE, name="mine")
    check((mine.spec.size, mine.spec.color) == (2, "red"), mine.spec)


def owners(resource):
    return {(entry.manager, entry.operation) for entry in resource.metadata.managedFields}


def applies(api):
    """Two managers share a deployment by server-side apply."""
    deployments = dynamic.DynamicClient(api).resources.get(api_version="apps/v1", kind="Deployment")

    def deployment(spec):
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "applied"},
                "spec": spec}

    def by(manager, spec, **options):
        return apply(deployments, deployment(spec), manager, **options)

    def pod(*containers):
        return {"metadata": {"labels": {"app": "applied"}},
                "spec": {"containers": [{"name": n, "image": i} for n, i in containers]}}

    whole = {"replicas": 1, "selector": {"matchLabels": {"app": "applied"}},
             "template": pod(("main", "web:1"))}
    made = by("one", whole)
    check(owners(made) == {("one", "Apply")}, owners(made))
    check(by("one", whole).metadata.resourceVersion == made.metadata.resourceVersion, "written")
    both = by("two", {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}})
    check([c.name for c in both.spec.template.spec.containers] == ["main", "side"], both.spec)

    taken = {"replicas": 4}
    try:
        by("two", taken)
        raise AssertionError("no conflict")
    except dynamic.exceptions.ConflictError as failure:
        check(b'conflict with \\"one\\"' in failure.body, failure.body)
    check(by("two", taken, dry_run="All", force_conflicts=True).spec.replicas == 4, "dry run")
    check(deployments.get(namespace=NAMESPACE, name="applied").spec.replicas == 1, "kept")
    forced = by("two", taken, force_conflicts=True)
    check(forced.spec.replicas == 4, forced.spec)
    check([c.name for c in forced.spec.template.spec.containers] == ["main"], "given up, and there")
    check(owners(forced) == {("one", "Apply"), ("two", "Apply")}, owners(forced))

    # Another kind of write takes ownership of the fields that it changes.
    deployments.patch(namespace=NAMESPACE, name="applied", body={"spec": {"replicas": 7}},
                      content_type="application/merge-patch+json", field_manager="hand")
    now = deployments.get(namespace=NAMESPACE, name="applied")
    check(owners(now) == {("one", "Apply"), ("hand", "Update")}, owners(now))
    deployments.delete(namespace=NAMESPACE, name="applied")


def main():
    api = config.new_client_from_config(sys.argv[1])
    core = client.CoreV1Api(api)
    check(client.VersionApi(api).get_code().major == "1", "version")
    check("default" in [n.metadata.name for n in core.list_namespace().items], "namespaces")
    objects(core)
    lists(core)
    watches(core)
    leases(client.CoordinationV1Api(api))
    workloads(client.AppsV1Api(api))
    applies(api)
    custom_resources(api)
    print("ok")


if __name__ == "__main__":
    main()
