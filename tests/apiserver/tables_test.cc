// Tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apiserver/tables/printer.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using api::Value;

constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
const HttpClient::Headers kAsTable = {{"Accept", kTable}};

Object recorded(const std::string& name) {
  return from_json(test::read_file(test::testdata("kube-1.36/list/" + name)));
}

/// Creates recorded objects on the server, as far as clients can.
void load(Server& server, const std::string& collection, const Object& list) {
  for (const Value item : list["items"].elements()) {
    auto document = from_json(item.to_json()).to_document();
    for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields"})
      document["metadata"].RemoveMember(field);
    const std::string body = Object::from(document).to_json();
    ASSERT_EQ(http(server.port(), "POST", collection, body).code, 201);
    const std::string one = collection + "/" + std::string(item["metadata"]["name"].as_string());
    ASSERT_EQ(http(server.port(), "PUT", one + "/status", body).code, 200);
  }
}

std::vector<std::string> cells_of(Value row) {
  std::vector<std::string> out;
  for (const Value cell : row["cells"].elements()) out.push_back(cell.to_json());
  return out;
}

struct Recording {
  const char* resource;
  const char* collection;
  /// The column that depends on the clock.
  std::size_t age;
};

class RecordedTables : public testing::TestWithParam<Recording> {};

TEST_P(RecordedTables, EqualTheRealServers) {
  Server server;
  for (const char* ns : {"shop", "shop2"}) {
    http(server.port(), "POST", "/api/v1/namespaces",
         R"({"metadata":{"name":")" + std::string(ns) + R"("}})");
  }
  const std::string name = GetParam().resource;
  load(server, GetParam().collection, recorded(name + ".json"));
  const Object expected = recorded(name + ".table.json");
  const auto answer = http(server.port(), "GET", GetParam().collection, {}, kAsTable);
  EXPECT_EQ(answer.headers.at("content-type"), "application/json");
  const Object table = from_json(answer.body);
  EXPECT_EQ(table.kind(), "Table");
  EXPECT_EQ(table.api_version(), "meta.k8s.io/v1");
  EXPECT_FALSE(table["metadata"]["resourceVersion"].as_string().empty());
  EXPECT_EQ(table["columnDefinitions"].to_json(), expected["columnDefinitions"].to_json());
  ASSERT_EQ(table["rows"].size(), expected["rows"].size());
  for (std::size_t i = 0; i < table["rows"].size(); ++i) {
    const Value row = table["rows"][i];
    const Value wanted = expected["rows"][i];
    auto cells = cells_of(row);
    auto wanted_cells = cells_of(wanted);
    ASSERT_EQ(cells.size(), wanted_cells.size());
    cells[GetParam().age] = wanted_cells[GetParam().age] = "age";
    EXPECT_EQ(cells, wanted_cells);
    EXPECT_EQ(row["conditions"].to_json(), wanted["conditions"].to_json());
    EXPECT_EQ(row["object"]["kind"].as_string(), "PartialObjectMetadata");
    EXPECT_EQ(row["object"]["apiVersion"].as_string(), "meta.k8s.io/v1");
    EXPECT_EQ(row["object"]["metadata"]["labels"].to_json(),
              wanted["object"]["metadata"]["labels"].to_json());
    EXPECT_FALSE(row["object"].contains("spec"));
  }
}

INSTANTIATE_TEST_SUITE_P(Kube136, RecordedTables,
                         testing::Values(Recording{"v1_pods", "/api/v1/namespaces/shop2/pods", 4},
                                         Recording{"apps_v1_deployments",
                                                   "/apis/apps/v1/namespaces/shop/deployments", 4}),
                         [](const auto& test) { return std::string(test.param.resource); });

TEST(Printers, HaveACellForEachColumn) {
  for (const api::ResourceInfo& info : api::builtin_resources()) {
    SCOPED_TRACE(info.plural);
    const auto printer = tables::Printer::of_builtin(info.group, info.plural);
    tables::Cells cells{api::Time{}};
    printer->append(from_json(R"({"metadata":{"name":"x"}})"), cells);
    EXPECT_EQ(cells.size(), printer->columns().size());
    // Every kind with columns has rows, and vice versa.
    EXPECT_EQ(
        tables::columns_of(info.group, info.plural).has_value() || info.group == "events.k8s.io",
        tables::find_row(info.group, info.plural) != nullptr);
  }
}

struct Row {
  const char* name;
  const char* group;
  const char* plural;
  const char* object;
  /// Without the name, which is the first column except for events.
  const char* cells;
};

class Rows : public testing::TestWithParam<Row> {};

TEST_P(Rows, EqualKubernetes) {
  const Row& row = GetParam();
  auto document = from_json(row.object).to_document();
  auto& allocator = document.GetAllocator();
  if (!document.HasMember("metadata"))
    document.AddMember("metadata", rapidjson::Value(rapidjson::kObjectType), allocator);
  document["metadata"].AddMember("name", "x", allocator);
  document["metadata"].AddMember("creationTimestamp", "2026-11-20T11:00:00Z", allocator);
  tables::Cells cells(*api::parse_time("2026-11-20T12:30:00Z"));
  tables::Printer::of_builtin(row.group, row.plural)->append(Object::from(document), cells);
  const std::string expected =
      std::string_view(row.plural) == "events"
          ? row.cells
          : std::string(R"("x")") + (*row.cells != 0 ? "," : "") + row.cells;
  EXPECT_EQ(cells.json(), expected);
}

const Row kRows[] = {
    {"running_pod", "", "pods",
     R"({"spec":{"nodeName":"n","containers":[{"name":"a"},{"name":"b"}]},"status":{"phase":"Running",
         "podIPs":[{"ip":"10.0.0.1"}],"containerStatuses":[
           {"ready":true,"restartCount":2,"state":{"running":{}},
            "lastState":{"terminated":{"finishedAt":"2026-11-20T12:28:00Z"}}},
           {"restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})",
     R"x("1/2","CrashLoopBackOff","3 (2m ago)","90m","10.0.0.1","n","<none>","<none>")x"},
    {"initializing_pod", "", "pods",
     R"({"spec":{"initContainers":[{"name":"i"},{"name":"j"}],"containers":[{"name":"a"}]},
         "status":{"phase":"Pending","initContainerStatuses":[
           {"name":"i","state":{"terminated":{"exitCode":0}}},{"name":"j","state":{"running":{}}}],
           "containerStatuses":[{"state":{"waiting":{"reason":"PodInitializing"}}}]}})",
     R"("0/1","Init:1/2","0","90m","<none>","<none>","<none>","<none>")"},
    {"failed_initialization", "", "pods",
     R"({"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"a"}]},
         "status":{"initContainerStatuses":[
           {"name":"i","restartCount":4,"state":{"terminated":{"exitCode":3}}}]}})",
     R"("0/1","Init:ExitCode:3","4","90m","<none>","<none>","<none>","<none>")"},
    {"sidecar", "", "pods",
     R"({"spec":{"initContainers":[{"name":"i","restartPolicy":"Always"}],"containers":[{"name":"a"}],
                 "readinessGates":[{"conditionType":"lb"}]},
         "status":{"phase":"Running","conditions":[{"type":"lb","status":"True"}],
           "initContainerStatuses":[{"name":"i","started":true,"ready":true}],
           "containerStatuses":[{"ready":true,"state":{"running":{}}}]}})",
     R"("2/2","Running","0","90m","<none>","<none>","<none>","1/1")"},
    {"completed_pod", "", "pods",
     R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Succeeded",
         "containerStatuses":[{"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}})",
     R"("0/1","Completed","0","90m","<none>","<none>","<none>","<none>")"},
    {"terminating_pod", "", "pods",
     R"({"metadata":{"deletionTimestamp":"2026-11-20T12:30:00Z"},
         "spec":{"containers":[{"name":"a"}]},"status":{"phase":"Running"}})",
     R"("0/1","Terminating","0","90m","<none>","<none>","<none>","<none>")"},
    {"gated_pod", "", "pods",
     R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Pending",
         "conditions":[{"type":"PodScheduled","reason":"SchedulingGated"}]}})",
     R"("0/1","SchedulingGated","0","90m","<none>","<none>","<none>","<none>")"},
    {"replica_set", "apps", "replicasets",
     R"({"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},
         "template":{"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"j"}]}}},
         "status":{"replicas":2,"readyReplicas":1}})",
     R"(3,2,1,"90m","c,d","i,j","a=b")"},
    {"stateful_set", "apps", "statefulsets",
     R"({"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}},
         "status":{"readyReplicas":1}})",
     R"("1/3","90m","c","i")"},
    {"daemon_set", "apps", "daemonsets",
     R"({"spec":{"selector":{},"template":{"spec":{"nodeSelector":{"b":"2","a":"1"}}}},
         "status":{"desiredNumberScheduled":5,"currentNumberScheduled":4,"numberReady":3,
                   "updatedNumberScheduled":2,"numberAvailable":1}})",
     R"(5,4,3,2,1,"a=1,b=2","90m","","","<none>")"},
    {"finished_job", "batch", "jobs",
     R"({"spec":{"completions":2},"status":{"succeeded":2,"startTime":"2026-11-20T11:00:00Z",
         "completionTime":"2026-11-20T11:05:30Z","conditions":[{"type":"Complete","status":"True"}]}})",
     R"("Complete","2/2","5m30s","90m","","","<none>")"},
    {"running_job", "batch", "jobs", R"({"spec":{"parallelism":3},"status":{"succeeded":1}})",
     R"("Running","1/1 of 3","","90m","","","<none>")"},
    {"cron_job", "batch", "cronjobs",
     R"({"spec":{"schedule":"* * * * *","suspend":false},"status":{"active":[{}],
         "lastScheduleTime":"2026-11-20T12:29:50Z"}})",
     R"("* * * * *","<none>","False",1,"10s","90m","","","<none>")"},
    {"service", "", "services",
     R"({"spec":{"type":"NodePort","clusterIPs":["10.0.0.7"],"selector":{"app":"web"},
         "ports":[{"port":80,"nodePort":30080,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}})",
     R"("NodePort","10.0.0.7","<none>","80:30080/TCP,53/UDP","90m","app=web")"},
    {"balanced_service", "", "services",
     R"({"spec":{"type":"LoadBalancer","clusterIP":"10.0.0.7","externalIPs":["1.1.1.1"]},
         "status":{"loadBalancer":{"ingress":[{"ip":"2.2.2.2"},{"hostname":"a.example"}]}}})",
     R"("LoadBalancer","10.0.0.7","2.2.2.2,a.example,1.1.1.1","<none>","90m","<none>")"},
    {"pending_service", "", "services", R"({"spec":{"type":"LoadBalancer"}})",
     R"("LoadBalancer","<none>","<pending>","<none>","90m","<none>")"},
    {"external_service", "", "services",
     R"({"spec":{"type":"ExternalName","externalName":"db.example"}})",
     R"("ExternalName","<none>","db.example","<none>","90m","<none>")"},
    {"endpoints", "", "endpoints",
     R"({"subsets":[{"addresses":[{"ip":"10.0.0.1"},{"ip":"fd00::1"},{"ip":"10.0.0.3"},{"ip":"10.0.0.4"}],
                     "ports":[{"port":80}]}]})",
     R"("10.0.0.1:80,[fd00::1]:80,10.0.0.3:80 + 1 more...","90m")"},
    {"no_endpoints", "", "endpoints", "{}", R"("<none>","90m")"},
    {"endpoint_slice", "discovery.k8s.io", "endpointslices",
     R"({"addressType":"IPv4","ports":[{"port":80},{"name":"any"}],"endpoints":[{"addresses":["a","b"]}]})",
     R"("IPv4","80,any","a,b","90m")"},
    {"ingress", "networking.k8s.io", "ingresses",
     R"({"spec":{"ingressClassName":"nginx","tls":[{}],"rules":[{"host":"a"},{"host":"b"},{"host":"c"},{"host":"d"}]},
         "status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}})",
     R"("nginx","a,b,c + 1 more...","1.2.3.4","80, 443","90m")"},
    {"any_ingress", "networking.k8s.io", "ingresses", R"({"spec":{"rules":[{}]}})",
     R"("<none>","*","","80","90m")"},
    {"network_policy", "networking.k8s.io", "networkpolicies",
     R"({"spec":{"podSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["x","y"]}]}}})",
     R"x("a in (x,y)","90m")x"},
    {"node", "", "nodes",
     R"({"metadata":{"labels":{"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/a":""}},
         "spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}],
         "addresses":[{"type":"InternalIP","address":"10.1.1.1"}],
         "nodeInfo":{"kubeletVersion":"v1.36.0","osImage":"Debian"}}})",
     R"("Ready,SchedulingDisabled","a,worker","90m","v1.36.0","10.1.1.1","<none>","Debian","<unknown>","<unknown>")"},
    {"event", "", "events",
     R"({"type":"Warning","reason":"Failed","message":" no \n","count":3,
         "firstTimestamp":"2026-11-20T12:00:00Z","lastTimestamp":"2026-11-20T12:29:00Z",
         "involvedObject":{"kind":"Pod","name":"p","fieldPath":"spec"},
         "source":{"component":"kubelet","host":"n"}})",
     R"("60s","Warning","Failed","pod/p","spec","kubelet, n","no","30m",3,"x")"},
    {"new_event", "", "events",
     R"({"eventTime":"2026-11-20T12:29:00.000000Z","reportingComponent":"c","involvedObject":{"kind":"Pod"},
         "series":{"count":7,"lastObservedTime":"2026-11-20T12:29:30.000000Z"}})",
     R"("30s","","","pod","","c","","60s",7,"x")"},
    {"namespace", "", "namespaces", R"({"status":{"phase":"Active"}})", R"("Active","90m")"},
    {"config_map", "", "configmaps", R"({"data":{"a":"1"},"binaryData":{"b":"Mg=="}})",
     R"(2,"90m")"},
    {"secret", "", "secrets", R"({"type":"Opaque","data":{"a":"MQ=="}})", R"("Opaque",1,"90m")"},
    {"service_account", "", "serviceaccounts", "{}", R"("90m")"},
    {"volume", "", "persistentvolumes",
     R"({"spec":{"capacity":{"storage":"1024Mi"},"accessModes":["ReadOnlyMany","ReadWriteOnce"],
         "persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"n","name":"c"},
         "storageClassName":"fast","volumeMode":"Block"},"status":{"phase":"Bound"}})",
     R"("1Gi","RWO,ROX","Retain","Bound","n/c","fast","<unset>","","90m","Block")"},
    {"bound_claim", "", "persistentvolumeclaims",
     R"({"spec":{"volumeName":"v","storageClassName":"fast"},
         "status":{"phase":"Bound","capacity":{"storage":"1Gi"},"accessModes":["ReadWriteMany"]}})",
     R"("Bound","v","1Gi","RWX","fast","<unset>","90m","<unset>")"},
    {"pending_claim", "", "persistentvolumeclaims", R"({"status":{"phase":"Pending"}})",
     R"("Pending","","","","","<unset>","90m","<unset>")"},
    {"storage_class", "storage.k8s.io", "storageclasses",
     R"({"provisioner":"p","allowVolumeExpansion":true})",
     R"("p","Delete","Immediate",true,"90m")"},
    {"autoscaler", "autoscaling", "horizontalpodautoscalers",
     R"({"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"minReplicas":2,"maxReplicas":9,
         "metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}},
                    {"type":"Pods","pods":{"target":{"averageValue":"1k"}}},
                    {"type":"Object","object":{"target":{"value":"5"}}}]},
         "status":{"currentReplicas":3,"currentMetrics":[
           {"type":"Resource","resource":{"current":{"averageUtilization":20}}}]}})",
     R"("Deployment/web","cpu: 20%/80%, <unknown>/1k + 1 more...","2",9,3,"90m")"},
    {"autoscaler_of_other_amounts", "autoscaling", "horizontalpodautoscalers",
     R"({"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"maxReplicas":9,
         "metrics":[{"type":"External","external":{"target":{"value":"5"}}},
                    {"type":"Resource","resource":{"name":"cpu","target":{"averageValue":"1"}}}]},
         "status":{"currentMetrics":[
           {"type":"External","external":{"current":{"averageValue":"2"}}},
           {"type":"Resource","resource":{"current":{"averageUtilization":20}}}]}})",
     R"("Deployment/web","<nil>/5, cpu: <nil>/1","<unset>",9,0,"90m")"},
    {"autoscaler_without_status", "autoscaling", "horizontalpodautoscalers",
     R"({"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"maxReplicas":9,
         "metrics":[{"type":"External","external":{"target":{"averageValue":"5"}}},
                    {"type":"Object","object":{"target":{"value":"1k"}}}]}})",
     R"("Deployment/web","<unknown>/5 (avg), <unknown>/1k","<unset>",9,0,"90m")"},
    {"lease", "coordination.k8s.io", "leases", R"({"spec":{"holderIdentity":"me"}})",
     R"("me","90m")"},
    {"role_binding", "rbac.authorization.k8s.io", "rolebindings",
     R"({"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"User","name":"v"},
         {"kind":"Group","name":"g"},{"kind":"ServiceAccount","namespace":"n","name":"s"}]})",
     R"("Role/r","90m","u, v","g","n/s")"},
    {"disruption_budget", "policy", "poddisruptionbudgets",
     R"({"spec":{"minAvailable":"50%"},"status":{"disruptionsAllowed":1}})",
     R"("50%","N/A",1,"90m")"},
    {"quota", "", "resourcequotas",
     R"({"status":{"hard":{"pods":"5","limits.cpu":"2","cpu":"1"},"used":{"pods":"1"}}})",
     R"("cpu: 0/1, pods: 1/5","limits.cpu: 0/2","90m")"},
    {"priority_class", "scheduling.k8s.io", "priorityclasses",
     R"({"value":100,"globalDefault":true,"preemptionPolicy":"Never"})",
     R"(100,true,"90m","Never")"},
    {"role", "rbac.authorization.k8s.io", "roles", "{}", R"("2026-11-20T11:00:00Z")"},
    {"limit_range", "", "limitranges", "{}", R"("2026-11-20T11:00:00Z")"},
    {"scale", "autoscaling", "scale", R"({"spec":{"replicas":3},"status":{"replicas":1}})",
     R"(3,1,"90m")"},
    {"controller_revision", "apps", "controllerrevisions",
     R"({"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","controller":true}]},
         "revision":4})",
     R"("daemonset.apps/d",4,"90m")"},
};

INSTANTIATE_TEST_SUITE_P(Kinds, Rows, testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.name); });

class Tables : public ClientTest {
 protected:
  Object get(const std::string& path, const std::string& accept = kTable) const {
    return from_json(http(server_.port(), "GET", path, {}, {{"Accept", accept}}).body);
  }
};

TEST_F(Tables, ShowOneObject) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  const Object table = get("/api/v1/namespaces/default/configmaps/c");
  EXPECT_EQ(table["metadata"]["resourceVersion"].as_string(), created.resource_version());
  EXPECT_EQ(table["rows"].size(), 1u);
  EXPECT_EQ(table["rows"][0]["cells"][0].as_string(), "c");
}

TEST_F(Tables, IncludeTheRequestedPartOfObjects) {
  in(kConfigMaps).create(config_map("c"));
  const std::string path = "/api/v1/namespaces/default/configmaps";
  EXPECT_TRUE(
      lookout::test::held(get(path + "?includeObject=None"))["rows"][0]["object"].is_null());
  EXPECT_FALSE(
      lookout::test::held(get(path + "?includeObject=Metadata"))["rows"][0]["object"].contains(
          "data"));
  const Object whole = get(path + "?includeObject=Object");
  EXPECT_EQ(whole["rows"][0]["object"]["data"]["key"].as_string(), "x");
  EXPECT_EQ(whole["rows"][0]["object"]["kind"].as_string(), "ConfigMap");
  const Object refused = get(path + "?includeObject=All");
  EXPECT_EQ(refused["code"].as_int(), 400);
  EXPECT_EQ(refused["message"].as_string(),
            "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must "
            "be 'Metadata', 'Object', 'None', or empty");
}

TEST_F(Tables, ArePagedLikeLists) {
  for (int i = 0; i < 3; ++i) in(kConfigMaps).create(config_map("c" + std::to_string(i)));
  const Object page = get("/api/v1/namespaces/default/configmaps?limit=2");
  EXPECT_EQ(page["rows"].size(), 2u);
  EXPECT_FALSE(page["metadata"]["continue"].as_string().empty());
  EXPECT_EQ(page["metadata"]["remainingItemCount"].as_int(), 1);
}

TEST_F(Tables, HaveTheRequestedVersion) {
  const std::string path = "/api/v1/namespaces/default/configmaps";
  EXPECT_EQ(get(path, "application/json;as=Table;v=v1beta1;g=meta.k8s.io").api_version(),
            "meta.k8s.io/v1beta1");
  // kubectl's header.
  EXPECT_EQ(get(path,
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;"
                "g=meta.k8s.io,application/json")
                .api_version(),
            "meta.k8s.io/v1");
  EXPECT_EQ(get(path, "application/json;as=Table;v=v2;g=meta.k8s.io,application/json").kind(),
            "ConfigMapList");
}

TEST_F(Tables, DoNotReplaceFailures) {
  const Object status = get("/api/v1/namespaces/default/configmaps/nobody");
  EXPECT_EQ(status.kind(), "Status");
  EXPECT_EQ(status["code"].as_int(), 404);
}

TEST_F(Tables, InWatchesNameTheirColumnsOnce) {
  in(kConfigMaps).create(config_map("a"));
  in(kConfigMaps).create(config_map("b"));
  const auto answer = http(server_.port(), "GET",
                           "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0&"
                           "timeoutSeconds=1&allowWatchBookmarks=true",
                           {}, kAsTable);
  std::vector<Object> events;
  for (std::size_t begin = 0; begin < answer.body.size();) {
    const std::size_t end = answer.body.find('\n', begin);
    events.push_back(from_json(answer.body.substr(begin, end - begin)));
    begin = end + 1;
  }
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[0]["type"].as_string(), "ADDED");
  EXPECT_EQ(events[0]["object"]["kind"].as_string(), "Table");
  EXPECT_EQ(events[0]["object"]["columnDefinitions"].size(), 3u);
  EXPECT_EQ(events[0]["object"]["rows"][0]["cells"][0].as_string(), "a");
  EXPECT_TRUE(events[1]["object"]["columnDefinitions"].is_null());
  EXPECT_EQ(events[1]["object"]["rows"][0]["cells"][0].as_string(), "b");
  EXPECT_EQ(events.back()["type"].as_string(), "BOOKMARK");
  EXPECT_EQ(events.back()["object"]["kind"].as_string(), "Table");
}

TEST_F(Tables, UsePrinterColumnsOfDefinition) {
  all(kDefinitions).create(from_json(R"({
    "metadata":{"name":"crontabs.stable.example.com"},
    "spec":{"group":"stable.example.com","scope":"Namespaced",
      "names":{"plural":"crontabs","singular":"crontab","kind":"CronTab","listKind":"CronTabList"},
      "versions":[
        {"name":"v1","served":true,"storage":true,
         "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
         "additionalPrinterColumns":[
           {"name":"Spec","type":"string","jsonPath":".spec.cronSpec","description":"When"},
           {"name":"Replicas","type":"integer","jsonPath":".spec.replicas","priority":1},
           {"name":"Load","type":"number","jsonPath":".spec.load"},
           {"name":"Off","type":"boolean","jsonPath":".spec.suspended"},
           {"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"},
           {"name":"Hosts","type":"string","jsonPath":".spec.hosts"},
           {"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}]},
        {"name":"v2","served":true,"storage":false,
         "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})"));
  const api::Resource crontabs("stable.example.com", "v1", "CronTab", "crontabs", true);
  in(crontabs).create(from_json(R"({"kind":"CronTab","apiVersion":"stable.example.com/v1",
    "metadata":{"name":"c"},"spec":{"cronSpec":"* *","replicas":2,"load":0.5,"suspended":true,"hosts":["a"]},
    "status":{"conditions":[{"type":"Up","status":"No"},{"type":"Ready","status":"Yes"}]}})"));
  const Object table = get("/apis/stable.example.com/v1/namespaces/default/crontabs");
  auto cells = cells_of(table["rows"][0]);
  ASSERT_EQ(cells.size(), 8u);
  cells.pop_back();  // the age
  EXPECT_EQ(cells, (std::vector<std::string>{R"("c")", R"("* *")", "2", "0.5", "true", R"("Yes")",
                                             R"("[\"a\"]")"}));
  EXPECT_EQ(
      table["columnDefinitions"][1].to_json(),
      from_json(R"({"name":"Spec","type":"string","format":"","description":"When","priority":0})")
          .to_json());
  EXPECT_EQ(table["columnDefinitions"][2]["description"].as_string(),
            "Custom resource definition column (in JSONPath format): .spec.replicas");
  EXPECT_EQ(table["columnDefinitions"][2]["priority"].as_int(), 1);

  const Object plain = get("/apis/stable.example.com/v2/namespaces/default/crontabs");
  ASSERT_EQ(plain["columnDefinitions"].size(), 2u);
  EXPECT_EQ(plain["columnDefinitions"][1]["name"].as_string(), "Age");
  EXPECT_EQ(plain["columnDefinitions"][1]["type"].as_string(), "date");
}

}  // namespace
}  // namespace lookout::apiserver
