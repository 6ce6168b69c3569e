// Validation: custom resources by their schema, smaller built-in kinds by their rules.
#include <gtest/gtest.h>

#include <string>

#include "lookout/apiserver/storage/memory.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

class CustomSchema : public ClientTest {
 protected:
  CustomSchema() {
    all(kDefinitions)
        .create(from_json(std::string(kThingDefinition) + R"("subresources":{"status":{}},
          "schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
            "status":{"type":"object","properties":{"phase":{"type":"string"}}},
            "spec":{"type":"object","required":["when"],"properties":{
              "when":{"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":5},
              "size":{"type":"integer","minimum":1,"maximum":10,"default":3},
              "count":{"type":"integer","format":"int32"},
              "share":{"type":"number","maximum":1,"exclusiveMaximum":true},
              "mode":{"type":"string","enum":["a","b"]},
              "port":{"x-kubernetes-int-or-string":true},
              "maybe":{"type":"string","nullable":true},
              "list":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"object",
                "required":["n"],"properties":{"n":{"type":"integer"},"d":{"type":"string","default":"x"}}}},
              "map":{"type":"object","additionalProperties":{"type":"integer"}},
              "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}]}})"));
  }
  static Object thing(const std::string& spec) {
    return from_json(
        R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":)" + spec +
        "}");
  }
};

TEST_F(CustomSchema, DropsUnknownFieldsAndSetsDefaults) {
  const Object created = in(kThings).create(
      thing(R"({"when":"now","more":1,"list":[{"n":1,"m":2}],"any":{"x":{"y":1}},"map":{"k":1},)"
            R"("maybe":null,"mode":null})"));
  EXPECT_EQ(Object::parse(created["spec"].to_json()),
            from_json(R"({"when":"now","size":3,"list":[{"n":1,"d":"x"}],"any":{"x":{"y":1}},)"
                      R"("map":{"k":1},"maybe":null})"));
  const Object updated = in(kThings).update(changed(created, R"({"spec":{"size":null,"z":1}})"));
  EXPECT_EQ(updated["spec"]["size"].as_int(), 3);
  EXPECT_FALSE(updated["spec"].contains("z"));
  const Object status =
      in(kThings).update_status(changed(updated, R"({"status":{"phase":"Up","more":1}})"));
  EXPECT_EQ(status["status"].to_json(), R"({"phase":"Up"})");
}

class Definitions : public ClientTest {};

class CombinedSchema : public ClientTest {
 protected:
  CombinedSchema() {
    all(kDefinitions).create(from_json(std::string(kThingDefinition) + R"(
          "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
            "properties":{
              "one":{"type":"string"},"other":{"type":"string"},
              "port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}],
                "pattern":"^[a-z]+$"},
              "even":{"type":"integer","multipleOf":2,"not":{"enum":[4]}},
              "both":{"type":"string","allOf":[{"minLength":2},{"maxLength":4}]},
              "any":{"type":"string","anyOf":[{"enum":["x"]},{"pattern":"^y"}]},
              "when":{"type":"string","format":"date-time"},
              "address":{"type":"string","format":"ipv4"},
              "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
              "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
                "items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},
                  "v":{"type":"integer"}}}},
              "object":{"type":"object","x-kubernetes-embedded-resource":true,
                "x-kubernetes-preserve-unknown-fields":true}},
            "oneOf":[{"required":["one"]},{"required":["other"]}]}}}}}]}})"));
  }
  std::string refused(const std::string& spec) const {
    const auto status = status_of([&] {
      in(kThings).create(from_json(
          R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":)" +
          spec + "}"));
    });
    EXPECT_EQ(status.code, 422);
    const std::string prefix = "Thing.example.com \"t\" is invalid: ";
    return status.message.starts_with(prefix) ? status.message.substr(prefix.size())
                                              : status.message;
  }
};

TEST_F(CombinedSchema, AcceptsValidObjects) {
  const Object created = in(kThings).create(from_json(
      R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"one":"1",)"
      R"("port":"http","even":2,"both":"abc","any":"yes","when":"2026-01-02T03:04:05Z",)"
      R"("address":"10.0.0.1","set":["a","b"],"map":[{"k":"a"},{"k":"b","v":1}],)"
      R"("object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"more":1}}})"));
  EXPECT_EQ(created["spec"]["object"]["more"].as_int(), 1);
  EXPECT_EQ(created["spec"]["object"]["metadata"]["name"].as_string(), "p");
}

TEST_F(CombinedSchema, RejectsCombinationsWithKubernetesMessages) {
  EXPECT_EQ(refused("{}"),
            R"([<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). )"
            R"(Found none valid, spec.one: Required value])");
  EXPECT_EQ(refused(R"({"one":"1","other":"2"})"),
            R"(<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). )"
            R"(Found 2 valid alternatives)");
  EXPECT_EQ(refused(R"({"one":"1","even":4})"),
            R"(<nil>: Invalid value: "": "spec.even" must not validate the schema (not))");
  EXPECT_EQ(refused(R"({"one":"1","even":3})"),
            "spec.even: Invalid value: 3: spec.even in body should be a multiple of 2");
  EXPECT_EQ(refused(R"({"one":"1","both":"x"})"),
            R"([spec.both: Invalid value: "x": spec.both in body should be at least 2 chars long, )"
            R"(<nil>: Invalid value: "": "spec.both" must validate all the schemas (allOf)])");
  EXPECT_EQ(refused(R"({"one":"1","any":"z"})"),
            R"([<nil>: Invalid value: "": "spec.any" must validate at least one schema (anyOf), )"
            R"(spec.any: Unsupported value: "z": supported values: "x"])");
}

TEST_F(CombinedSchema, RejectsInvalidFormatsAndLists) {
  EXPECT_EQ(refused(R"({"one":"1","port":true})"),
            R"(spec.port: Invalid value: "boolean": spec.port in body must be of type )"
            R"(integer,string: "boolean")");
  EXPECT_EQ(refused(R"({"one":"1","port":"80"})"),
            R"(spec.port: Invalid value: "80": spec.port in body should match '^[a-z]+$')");
  EXPECT_EQ(
      refused(R"({"one":"1","when":"soon"})"),
      R"(spec.when: Invalid value: "soon": spec.when in body must be of type date-time: "soon")");
  EXPECT_EQ(
      refused(R"({"one":"1","address":"::1"})"),
      R"(spec.address: Invalid value: "::1": spec.address in body must be of type ipv4: "::1")");
  EXPECT_EQ(refused(R"({"one":"1","set":["a","b","a"]})"), R"(spec.set[2]: Duplicate value: "a")");
  EXPECT_EQ(refused(R"({"one":"1","map":[{"k":"a","v":1},{"k":"a","v":2}]})"),
            R"(spec.map[1]: Duplicate value: {"k":"a"})");
  EXPECT_EQ(refused(R"({"one":"1","object":{"kind":"Pod"}})"),
            "spec.object.apiVersion: Required value");
  EXPECT_EQ(refused(R"({"one":"1","object":{"apiVersion":"v1","kind":""}})"),
            R"(spec.object.kind: Invalid value: "": must not be empty)");
}

TEST_F(Definitions, MustBeStructural) {
  const auto refused = [&](const std::string& group, const std::string& schema) {
    return status_of([&] {
             all(kDefinitions)
                 .create(from_json(
                     R"({"metadata":{"name":"things.)" + group + R"("},"spec":{"group":")" + group +
                     R"(","scope":"Namespaced","names":{"plural":"things",)" +
                     R"("kind":"Thing"},"versions":[{"name":"v1","served":true,)" +
                     R"("storage":true,"schema":{"openAPIV3Schema":)" + schema + "}}]}}"));
           })
        .message;
  };
  EXPECT_EQ(refused("example.com", R"({"properties":{"spec":{"properties":{"a":{}}}}})"),
            "CustomResourceDefinition.apiextensions.k8s.io \"things.example.com\" is invalid: "
            "[spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Required value: "
            "must not be empty for specified object fields, "
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be "
            "empty for specified object fields, spec.validation.openAPIV3Schema.type: Required "
            "value: must not be empty at the root]");
  EXPECT_EQ(refused("foo.k8s.io", R"({"type":"object"})"),
            "CustomResourceDefinition.apiextensions.k8s.io \"things.foo.k8s.io\" is invalid: "
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups "
            "must have approval annotation \"api-approved.kubernetes.io\", see "
            "https://github.com/kubernetes/enhancements/pull/1111");
}

struct Wrong {
  const char* spec;
  const char* message;
};

class WrongThings : public CustomSchema, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongThings, AreRejectedWithKubernetesMessages) {
  const auto status = status_of([&] { in(kThings).create(thing(GetParam().spec)); });
  EXPECT_EQ(status.code, 422);
  EXPECT_EQ(status.message,
            std::string("Thing.example.com \"t\" is invalid: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Server, WrongThings,
    testing::Values(
        Wrong{"{}", "spec.when: Required value"},
        Wrong{R"("x")",
              R"(spec: Invalid value: "string": spec in body must be of type object: "string")"},
        Wrong{
            R"({"when":"no","size":"3"})",
            R"(spec.size: Invalid value: "string": spec.size in body must be of type integer: "string")"},
        Wrong{
            R"({"when":"no","size":1.5})",
            R"(spec.size: Invalid value: "number": spec.size in body must be of type integer: "number")"},
        Wrong{R"({"when":"no","size":11})",
              "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"},
        Wrong{
            R"({"when":"no","size":0})",
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"},
        Wrong{
            R"({"when":"no","count":3000000000})",
            R"(spec.count: Invalid value: "": Checked value must be of type integer with format int32 in spec.count)"},
        Wrong{R"({"when":"no","share":1})",
              "spec.share: Invalid value: 1: spec.share in body should be less than 1"},
        Wrong{R"({"when":"no","mode":"c"})",
              R"(spec.mode: Unsupported value: "c": supported values: "a", "b")"},
        Wrong{R"({"when":"NO"})",
              R"(spec.when: Invalid value: "NO": spec.when in body should match '^[a-z]+$')"},
        Wrong{
            R"({"when":"n"})",
            R"(spec.when: Invalid value: "n": spec.when in body should be at least 2 chars long)"},
        Wrong{R"({"when":"tomorrow"})", "spec.when: Too long: may not be more than 5 bytes"},
        Wrong{
            R"({"when":"no","port":true})",
            R"(spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean")"},
        Wrong{R"({"when":"no","list":[]})",
              "spec.list: Invalid value: 0: spec.list in body should have at least 1 items"},
        Wrong{R"({"when":"no","list":[{"n":1},{"n":2},{"n":3}]})",
              "spec.list: Too many: 3: must have at most 2 items"},
        Wrong{R"({"when":"no","list":[{"n":1},{}]})", "spec.list[1].n: Required value"},
        Wrong{
            R"({"when":"no","map":{"k":"v"}})",
            R"(spec.map.k: Invalid value: "string": spec.map.k in body must be of type integer: "string")"}));

struct Lacking {
  const char* name;
  const char* path;
  const char* body;
  const char* causes;
};

class LackingObjects : public ClientTest, public testing::WithParamInterface<Lacking> {};

TEST_P(LackingObjects, AreRejected) {
  auto document = from_json(GetParam().body).to_document();
  if (!document.HasMember("metadata"))
    document.AddMember("metadata", rapidjson::Value(rapidjson::kObjectType),
                       document.GetAllocator());
  if (!document["metadata"].HasMember("name"))
    document["metadata"].AddMember("name", "x", document.GetAllocator());
  const auto answer =
      http(server_.port(), "POST", GetParam().path, Object::from(document).to_json());
  EXPECT_EQ(answer.code, 422);
  const std::string message(lookout::test::held(from_json(answer.body))["message"].as_string());
  EXPECT_EQ(message.substr(message.find("is invalid: ") + 12), GetParam().causes);
}

INSTANTIATE_TEST_SUITE_P(
    Server, LackingObjects,
    testing::Values(
        Lacking{
            "cron_job", "/apis/batch/v1/namespaces/default/cronjobs",
            R"({"spec":{"schedule":"bad","jobTemplate":{"spec":{"template":{"spec":{
                    "restartPolicy":"Never","containers":[{"name":"m","image":"i"}]}}}}}})",
            R"(spec.schedule: Invalid value: "bad": expected exactly 5 fields, found 1: [bad])"},
        Lacking{
            "cron_job_fields", "/apis/batch/v1/namespaces/default/cronjobs",
            R"({"spec":{"schedule":"TZ=UTC 60 * * * *","timeZone":"Mars/Phobos","concurrencyPolicy":"No",
                "startingDeadlineSeconds":-1,"successfulJobsHistoryLimit":-1,"failedJobsHistoryLimit":-2,
                "jobTemplate":{"spec":{"template":{"spec":{
                    "restartPolicy":"Never","containers":[{"name":"m","image":"i"}]}}}}}})",
            "[spec.schedule: Invalid value: \"TZ=UTC 60 * * * *\": end of range (60) above maximum "
            "(59): 60, spec.schedule: Invalid value: \"TZ=UTC 60 * * * *\": cannot use TZ or "
            "CRON_TZ "
            "in schedule, use timeZone field instead, spec.startingDeadlineSeconds: Invalid value: "
            "-1: must be greater than or equal to 0, spec.timeZone: Invalid value: "
            "\"Mars/Phobos\": "
            "unknown time zone Mars/Phobos, spec.concurrencyPolicy: Unsupported value: \"No\": "
            "supported values: \"Allow\", \"Forbid\", \"Replace\", "
            "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to "
            "0, "
            "spec.failedJobsHistoryLimit: Invalid value: -2: must be greater than or equal to 0]"},
        Lacking{"ingress", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", "{}",
                "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
        Lacking{"role_binding",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
                R"({"subjects":[{"kind":"Robot","name":"r"}]})",
                R"([roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole", )"
                R"(roleRef.name: Required value, subjects[0].kind: Unsupported value: "Robot": )"
                R"(supported values: "ServiceAccount", "User", "Group"])"},
        Lacking{"role", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
                R"({"rules":[{}]})",
                "[rules[0].verbs: Required value: verbs must contain at least one value, "
                "rules[0].apiGroups: Required value: resource rules must supply at least one api "
                "group, rules[0].resources: Required value: resource rules must supply at least "
                "one resource]"},
        Lacking{"storage_class", "/apis/storage.k8s.io/v1/storageclasses", "{}",
                "provisioner: Required value"},
        Lacking{"priority_class", "/apis/scheduling.k8s.io/v1/priorityclasses",
                R"({"value":2000000000})",
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
        Lacking{"lease", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
                R"({"spec":{"leaseDurationSeconds":0}})",
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"},
        Lacking{"autoscaler", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
                R"({"spec":{"maxReplicas":0,"scaleTargetRef":{"kind":"Deployment","name":"d"}}})",
                "[spec.maxReplicas: Required value: must be set and greater than 0, "
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to "
                "`minReplicas`, spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion "
                "must specify API group]"},
        Lacking{"claim", "/api/v1/namespaces/default/persistentvolumeclaims", "{}",
                "[spec.accessModes: Required value: at least 1 access mode is required, "
                "spec.resources[storage]: Required value]"},
        Lacking{"volume", "/api/v1/persistentvolumes", "{}",
                "[spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: "
                "Unsupported value: null: supported values: \"storage\", spec: Required value: "
                "must specify a volume type]"},
        Lacking{"service", "/api/v1/namespaces/default/services", "{}",
                "spec.ports: Required value"},
        Lacking{
            "source_ranges_in_an_annotation", "/api/v1/namespaces/default/services",
            R"({"metadata":{"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":
                    " 10.0.0.0/8, 10.0.0.1 ,fd00::1/8,"}},
                "spec":{"type":"LoadBalancer","ports":[{"port":80}]}})",
            "[metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: "
            "Invalid value: \"10.0.0.1\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or "
            "2001:db8::/64), "
            "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: "
            "Invalid value: \"fd00::1/8\": must not have bits set beyond the prefix length, "
            "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: "
            "Invalid value: \"\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or "
            "2001:db8::/64)]"},
        Lacking{"a_pod_with_its_own_users_in_namespaces_of_its_node",
                "/api/v1/namespaces/default/pods",
                R"({"spec":{"hostUsers":false,"hostNetwork":true,"hostPID":true,"hostIPC":true,
                    "containers":[{"name":"m","image":"i"}]}})",
                "[spec.hostNetwork: Forbidden: when `hostUsers` is false, spec.HostPID: Forbidden: "
                "when `hostUsers` is false, spec.HostIPC: Forbidden: when `hostUsers` is false]"}),
    [](const auto& test) { return std::string(test.param.name); });

class Status : public ClientTest {};

TEST_F(Status, IsSetAtCreation) {
  const Object created =
      in(kDeployments)
          .create(from_json(
              R"({"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},
          "template":{"metadata":{"labels":{"a":"b"}},
                      "spec":{"containers":[{"name":"main","image":"nginx"}]}}}})"));
  EXPECT_TRUE(created["status"].is_object());
  EXPECT_TRUE(
      lookout::test::held(in(kLeases).create(from_json(R"({"metadata":{"name":"l"}})")))["spec"]
          .is_object());
}

TEST(Restart, MakesOldResourceVersionsExpire) {
  ServerOptions options;
  options.first_revision = 100;
  std::string version;
  {
    Server before(options);
    version = lookout::test::held(from_json(
        http(before.port(), "GET", "/api/v1/namespaces").body))["metadata"]["resourceVersion"]
                  .as_string();
    EXPECT_GE(std::stoi(version), 100);
  }
  options.first_revision = 1000;
  Server after(options);
  const auto watch =
      http(after.port(), "GET",
           "/api/v1/namespaces?watch=1&timeoutSeconds=10&resourceVersion=" + version);
  EXPECT_EQ(lookout::test::held(from_json(watch.body))["object"]["code"].as_int(), 410);
  const auto list =
      http(after.port(), "GET",
           "/api/v1/namespaces?resourceVersionMatch=Exact&resourceVersion=" + version);
  EXPECT_EQ(list.code, 410);
}

// The case of a clock that was set back.
TEST(Restart, AWatchFromAVersionOfAnotherHistoryGetsAnError) {
  ServerOptions options;
  options.first_revision = 100;
  options.future_wait = std::chrono::milliseconds(50);
  Server server(options);
  const auto watch = http(server.port(), "GET",
                          "/api/v1/namespaces?watch=1&timeoutSeconds=60&resourceVersion=5000");
  EXPECT_EQ(watch.code, 200);
  const Object event = from_json(watch.body);
  EXPECT_EQ(event["type"].as_string(), "ERROR");
  EXPECT_EQ(event["object"]["code"].as_int(), 504);
  EXPECT_EQ(event["object"]["reason"].as_string(), "Timeout");
  EXPECT_NE(watch.body.find(R"("reason":"ResourceVersionTooLarge")"), std::string::npos)
      << watch.body;
  const auto list = http(server.port(), "GET", "/api/v1/namespaces?resourceVersion=5000");
  EXPECT_EQ(list.code, 504);
  EXPECT_NE(list.body.find("Too large resource version: 5000"), std::string::npos) << list.body;
}

TEST(Restart, RevisionsGrowWithTime) {
  using std::chrono::seconds;
  using std::chrono::sys_days;
  using namespace std::chrono_literals;
  const sys_days begin = 2026y / 11 / 20;
  const auto one = storage::revision_of_time(begin);
  // No server makes as many changes in the meantime.
  EXPECT_EQ(storage::revision_of_time(begin + seconds(60)), one + 60'000'000);
  // The revision is exact as a JavaScript number.
  EXPECT_LT(storage::revision_of_time(begin + std::chrono::years(200)), 1ull << 53);
  EXPECT_EQ(storage::revision_of_time({}), 1u);
}

}  // namespace
}  // namespace lookout::apiserver
