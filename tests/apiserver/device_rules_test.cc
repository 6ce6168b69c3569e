// Validation of the kinds of resource.k8s.io without recorded responses of a real kube-apiserver.
// The messages, paths and limits are those of k8s.io/kubernetes' validation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"

namespace lookout::apiserver {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";
const std::string kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const std::string kTemplates = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
const std::string kClasses = "/apis/resource.k8s.io/v1/deviceclasses";

const std::string kSlice =
    R"({"metadata":{"name":"s"},"spec":{"driver":"d.x","nodeName":"n",)"
    R"("pool":{"name":"p","resourceSliceCount":1},"devices":[{"name":"a"}]}})";
const std::string kClaim = R"({"metadata":{"name":"c"},"spec":{"devices":)"
                           R"({"requests":[{"name":"r","exactly":{"deviceClassName":"d"}}]}}})";
const std::string kTemplate = R"({"metadata":{"name":"t"},"spec":{"spec":{"devices":)"
                              R"({"requests":[{"name":"r","exactly":{"deviceClassName":"d"}}]}}}})";
const std::string kClass = R"({"metadata":{"name":"d"},"spec":{}})";

const std::string kIdentifier =
    ": a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    "validation is '[A-Za-z_][A-Za-z0-9_]*')";
const std::string kSubdomain =
    ": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const std::string kLabel =
    ": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const std::string kVersion = ": must be a string compatible with semver.org spec 2.0.0";
const std::string kReference =
    ": must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'";
const std::string kPlaces =
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const std::string kPolicy = "spec.devices[0].capacity[m].requestPolicy";

std::string without(const std::string& path) {
  return R"({"op":"remove","path":"/spec)" + path + R"("})";
}
/// A list of the results of `one` for the numbers from 0.
std::string list(std::size_t size, const std::function<std::string(const std::string&)>& one) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += (i == 0 ? "" : ",") + one(std::to_string(i));
  return out;
}
std::string copies(std::size_t size, const std::string& element) {
  return "[" + list(size, [&](const std::string& /*i*/) { return element; }) + "]";
}
std::string devices(std::size_t size) {
  return "[" + list(size, [](const std::string& i) { return R"({"name":"d)" + i + R"("})"; }) + "]";
}
/// Members of an object.
std::string entries(std::size_t size, const std::string& value) {
  return "{" + list(size, [&](const std::string& i) { return R"("n)" + i + R"(":)" + value; }) +
         "}";
}

/// A change of one object and the expected errors; none if it is accepted.
struct Case {
  std::string changes;
  std::vector<std::string> causes;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.changes.substr(0, 200); }

class DeviceRules : public ClientTest {
 protected:
  HttpAnswer send(const std::string& method, const std::string& path, const std::string& body,
                  const std::string& type = "application/json") {
    return http(server_.port(), method, path, body, {{"Content-Type", type}});
  }
  void create(const std::string& path, const std::string& body) {
    const HttpAnswer answer = send("POST", path, body);
    EXPECT_EQ(answer.code, 201) << answer.body;
  }
  HttpAnswer merge(const std::string& path, const std::string& body) {
    return send("PATCH", path, body, "application/merge-patch+json");
  }
  void expect(const std::string& path, const std::string& object, const Case& one) {
    const HttpAnswer answer =
        send("POST", path + "?dryRun=All", json_patched(object, one.changes).to_json());
    EXPECT_EQ(answer.code, one.causes.empty() ? 201 : 422) << answer.body;
    EXPECT_EQ(causes_of(answer), one.causes);
  }
};

class SliceRules : public DeviceRules, public testing::WithParamInterface<Case> {};
class ClaimRules : public DeviceRules, public testing::WithParamInterface<Case> {};
class ClassRules : public DeviceRules, public testing::WithParamInterface<Case> {};

TEST_P(SliceRules, EqualKubernetes) { expect(kSlices, kSlice, GetParam()); }
TEST_P(ClaimRules, EqualKubernetes) { expect(kClaims, kClaim, GetParam()); }
TEST_P(ClassRules, EqualKubernetes) { expect(kClasses, kClass, GetParam()); }

TEST_F(DeviceRules, SlicesKeepTheirDriverPoolAndNode) {
  create(kSlices, kSlice);
  const std::string path = kSlices + "/s";
  EXPECT_THAT(causes_of(merge(path, R"({"spec":{"driver":"e.x","pool":{"name":"q"},)"
                                    R"("nodeName":"m"}})")),
              ElementsAre(R"(spec.pool.name: Invalid value: "q": field is immutable)",
                          R"(spec.driver: Invalid value: "e.x": field is immutable)",
                          R"(spec.nodeName: Invalid value: "m": field is immutable)"));
  EXPECT_THAT(causes_of(merge(path, R"({"spec":{"nodeName":null,"allNodes":true}})")),
              ElementsAre("spec.nodeName: Invalid value: null: field is immutable"));
  const HttpAnswer other = merge(
      path,
      R"({"spec":{"pool":{"generation":2,"resourceSliceCount":3},"devices":[{"name":"b"}]}})");
  EXPECT_EQ(other.code, 200) << other.body;
}

TEST_F(DeviceRules, ChangedSlicesAreValidatedLikeNewOnes) {
  create(kSlices, kSlice);
  EXPECT_THAT(causes_of(merge(kSlices + "/s", R"({"spec":{"driver":"e.x","allNodes":false}})")),
              ElementsAre(R"(spec.driver: Invalid value: "e.x": field is immutable)",
                          "spec.allNodes: Invalid value: false: must be either unset or set to "
                          "true"));
}

TEST_F(DeviceRules, OneTermSelectsTheNodesOfASlice) {
  const auto selector = [](std::size_t terms) {
    return without("/nodeName") + "," +
           add_to_spec("/nodeSelector", R"({"nodeSelectorTerms":)" +
                                            copies(terms, R"({"matchExpressions":[{"key":"a",)"
                                                          R"("operator":"Exists"}]})") +
                                            "}");
  };
  expect(kSlices, kSlice, {selector(1), {}});
  EXPECT_THAT(causes_of(send("POST", kSlices, json_patched(kSlice, selector(2)).to_json())),
              ElementsAre(AllOf(StartsWith("spec.nodeSelector.nodeSelectorTerms: Invalid value: ["),
                                EndsWith("]: must have exactly one node selector term"))));
}

INSTANTIATE_TEST_SUITE_P(
    Limits, SliceRules,
    testing::Values(
        Case{add_to_spec("/devices", devices(128)), {}},
        Case{add_to_spec("/devices", devices(129)),
             {"spec.devices: Too many: 129: must have at most 128 items"}},
        Case{add_to_spec("/devices", devices(65)) + "," +
                 add_to_spec("/devices/64/taints", R"([{"key":"a","effect":"None"}])"),
             {"spec.devices: Too many: 65: must have at most 64 items"}},
        Case{add_to_spec("/devices", devices(65)) + "," +
                 add_to_spec("/devices/0/consumesCounters",
                             R"([{"counterSet":"c","counters":{"m":{"value":"1"}}}])"),
             {"spec.devices: Too many: 65: must have at most 64 items"}},
        Case{add_to_spec("/devices/0/taints", copies(16, R"({"key":"a","effect":"NoSchedule"})")),
             {}},
        Case{add_to_spec("/devices/0/taints", copies(17, R"({"key":"a","effect":"NoSchedule"})")),
             {"spec.devices[0].taints: Too many: 17: must have at most 16 items"}},
        Case{add_to_spec("/devices/0/attributes", entries(20, R"({"int":1})")) + "," +
                 add_to_spec("/devices/0/capacity", entries(12, R"({"value":"1"})")),
             {}},
        Case{add_to_spec("/devices/0/attributes", entries(20, R"({"int":1})")) + "," +
                 add_to_spec("/devices/0/capacity", entries(13, R"({"value":"1"})")),
             {"spec.devices[0]: Invalid value: 33: the total number of attributes and capacities "
              "must not exceed 32"}}));

INSTANTIATE_TEST_SUITE_P(
    Attributes, SliceRules,
    testing::Values(
        Case{
            add_to_spec("/devices/0/attributes", R"({"_a1":{"bool":true},"e.x/B":{"string":"b"}})"),
            {}},
        Case{add_to_spec("/devices/0/attributes", R"({"a-b":{"int":1}})"),
             {R"(spec.devices[0].attributes: Invalid value: "a-b")" + kIdentifier}},
        Case{add_to_spec("/devices/0/attributes",
                         R"({")" + std::string(33, 'a') + R"(":{"version":"1.0.0"}})"),
             {"spec.devices[0].attributes: Too long: may not be more than 32 bytes"}},
        Case{add_to_spec("/devices/0/attributes", R"({"a_/b":{"int":1}})"),
             {R"(spec.devices[0].attributes: Invalid value: "a_")" + kSubdomain}},
        Case{add_to_spec("/devices/0/attributes", R"({"/":{"int":1}})"),
             {R"(spec.devices[0].attributes: Invalid value: "": the domain must not be empty)",
              R"(spec.devices[0].attributes: Invalid value: "": the name must not be empty)"}},
        Case{add_to_spec("/devices/0/attributes", R"({"a/b/c":{"int":1}})"), {}},
        Case{add_to_spec("/devices/0/attributes",
                         R"({")" + std::string(64, 'x') + "/" + std::string(33, 'y') + R"(":{}})"),
             {"spec.devices[0].attributes: Too long: may not be more than 63 bytes",
              "spec.devices[0].attributes: Too long: may not be more than 32 bytes",
              "spec.devices[0].attributes[" + std::string(47, 'x') + "..." + std::string(12, 'x') +
                  "/" + std::string(33, 'y') +
                  R"(]: Invalid value: "": exactly one value must be specified)"}},
        Case{add_to_spec("/devices/0/capacity", R"({"a b":{"value":"1"}})"),
             {R"(spec.devices[0].capacity: Invalid value: "a b")" + kIdentifier}},
        Case{add_to_spec("/devices/0/attributes", R"({"v":{"version":"1.0.0-rc.1-a.0+b.01"}})"),
             {}},
        Case{add_to_spec("/devices/0/attributes", R"({"v":{"version":"foo"}})"),
             {R"(spec.devices[0].attributes[v].version: Invalid value: "foo")" + kVersion}},
        Case{add_to_spec("/devices/0/attributes", R"({"v":{"version":"1.0"}})"),
             {R"(spec.devices[0].attributes[v].version: Invalid value: "1.0")" + kVersion}},
        Case{add_to_spec("/devices/0/attributes", R"({"v":{"version":"01.0.0"}})"),
             {R"(spec.devices[0].attributes[v].version: Invalid value: "01.0.0")" + kVersion}},
        Case{add_to_spec("/devices/0/attributes", R"({"v":{"version":"1.0.0-01"}})"),
             {R"(spec.devices[0].attributes[v].version: Invalid value: "1.0.0-01")" + kVersion}},
        Case{add_to_spec("/devices/0/attributes", R"({"v":{"version":"1.0.0+"}})"),
             {R"(spec.devices[0].attributes[v].version: Invalid value: "1.0.0+")" + kVersion}},
        Case{add_to_spec("/devices/0/attributes",
                         R"({"v":{"version":"1.0.0-)" + std::string(60, 'a') + R"("}})"),
             {"spec.devices[0].attributes[v].version: Too long: may not be more than 64 bytes"}}));

INSTANTIATE_TEST_SUITE_P(
    Nodes, SliceRules,
    testing::Values(
        Case{add_to_spec("/allNodes", "false"),
             {"spec.allNodes: Invalid value: false: must be either unset or set to true"}},
        Case{add_to_spec("/perDeviceNodeSelection", "false"),
             {"spec.perDeviceNodeSelection: Invalid value: false: must be either unset or set to "
              "true"}},
        Case{add_to_spec("/allNodes", "true"),
             {"spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, "
              "`nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple "
              "fields are set"}},
        Case{without("/nodeName") + "," + add_to_spec("/perDeviceNodeSelection", "true") + "," +
                 add_to_spec("/devices/0/allNodes", "true"),
             {}},
        Case{without("/nodeName") + "," + add_to_spec("/perDeviceNodeSelection", "true"),
             {"spec.devices[0]: Required value: " + kPlaces}},
        Case{without("/nodeName") + "," + add_to_spec("/perDeviceNodeSelection", "true") + "," +
                 add_to_spec("/devices/0/nodeName", R"("")"),
             {R"(spec.devices[0].nodeName: Invalid value: "": must not be empty)",
              "spec.devices[0]: Required value: " + kPlaces}},
        Case{without("/nodeName") + "," + add_to_spec("/perDeviceNodeSelection", "true") + "," +
                 add_to_spec("/devices/0/allNodes", "true") + "," +
                 add_to_spec("/devices/0/nodeName", R"("n")"),
             {"spec.devices[0]: Invalid value: \"{`nodeName`, `allNodes`}\": " + kPlaces}},
        Case{add_to_spec("/devices/0/nodeName", R"("n")"),
             {"spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can "
              "only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice "
              "spec"}}));

INSTANTIATE_TEST_SUITE_P(
    Counters, SliceRules,
    testing::Values(
        Case{without("/devices") + "," +
                 add_to_spec("/sharedCounters", R"([{"name":"c","counters":{"m":{"value":"1"}}}])"),
             {}},
        Case{add_to_spec("/sharedCounters", R"([{"name":"c","counters":{"m":{"value":"1"}}}])"),
             {R"(spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed)"}},
        Case{without("/devices") + "," +
                 add_to_spec("/sharedCounters", R"([{"name":"c","counters":{"m":{"value":"1"}}},)"
                                                R"({"name":"c","counters":{"A":{"value":"1"}}},{},)"
                                                R"({"name":"C","counters":{"m":{"value":"1"}}}])"),
             {R"(spec.sharedCounters[1].counters: Invalid value: "A")" + kLabel,
              "spec.sharedCounters[2].name: Required value",
              "spec.sharedCounters[2].counters: Required value",
              R"(spec.sharedCounters[3].name: Invalid value: "C")" + kLabel,
              R"(spec.sharedCounters[1]: Duplicate value: "c")"}},
        Case{without("/devices") + "," +
                 add_to_spec("/sharedCounters", R"([{"name":"c","counters":)" +
                                                    entries(33, R"({"value":"1"})") + "}]"),
             {"spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items"}},
        Case{without("/devices") + "," + add_to_spec("/sharedCounters", copies(9, "{}")),
             {"spec.sharedCounters: Too many: 9: must have at most 8 items"}},
        Case{add_to_spec("/devices/0/consumesCounters", copies(3, "{}")),
             {"spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items"}},
        Case{add_to_spec("/devices/0/consumesCounters",
                         copies(2, R"({"counterSet":"c","counters":{"m":{"value":"1"}}})")),
             {R"(spec.devices[0].consumesCounters[1]: Duplicate value: "c")"}}));

/// A capacity of 10 of a device that several claims may share.
std::string with_policy(const std::string& policy) {
  return add_to_spec("/devices/0/allowMultipleAllocations", "true") + "," +
         add_to_spec("/devices/0/capacity",
                     R"({"m":{"value":"10","requestPolicy":)" + policy + "}}");
}

INSTANTIATE_TEST_SUITE_P(
    Capacities, SliceRules,
    testing::Values(
        Case{add_to_spec("/devices/0/capacity",
                         R"({"m":{"value":"1","requestPolicy":{"default":"1"}}})"),
             {kPolicy + ": Forbidden: allowMultipleAllocations must be true"}},
        Case{with_policy(R"({"default":"1"})"), {}},
        Case{with_policy(R"({"default":"2","validValues":["2","10"]})"), {}},
        Case{with_policy(R"({"default":"4","validRange":{"min":"2","max":"8","step":"2"}})"), {}},
        Case{with_policy(R"({"validValues":["1"],"validRange":{"min":"1"}})"),
             {kPolicy + ": Forbidden: exactly one policy can be specified, cannot specify "
                        R"("validValues" and "validRange" at the same time)"}},
        Case{with_policy(R"({"validValues":["1"]})"),
             {kPolicy + ".default: Required value: required when validValues is defined"}},
        Case{with_policy(R"({"validRange":{"min":"1"}})"),
             {kPolicy + ".default: Required value: required when validRange is defined"}},
        Case{with_policy(R"({"default":"1","validRange":{"max":"5"}})"),
             {kPolicy + ".validRange.min: Required value: required when validRange is defined"}},
        Case{
            with_policy(R"({"default":"2","validValues":["4","2","2","11"]})"),
            {kPolicy +
                 R"(.validValues[1]: Invalid value: "2": values must be sorted in ascending order)",
             kPolicy + R"(.validValues[3]: Invalid value: "11": option is larger than capacity )"
                       "value: 10",
             kPolicy + R"(.validValues[2]: Duplicate value: "2")"}},
        Case{with_policy(R"({"default":"3","validValues":["2"]})"),
             {kPolicy + R"(.validValues: Invalid value: "3": default value is not valid according )"
                        "to the requestPolicy"}},
        Case{with_policy(R"({"default":"1","validRange":{"min":"2","max":"11","step":"3"}})"),
             {kPolicy + R"(.validRange.min: Invalid value: "1": default is less than min: 2)",
              kPolicy +
                  R"(.validRange.max: Invalid value: "11": max is larger than capacity value: 10)",
              kPolicy + R"(.validRange.step: Invalid value: "1": value is not a multiple of a )"
                        "given step (3) from (2)"}},
        Case{with_policy(R"({"default":"11","validRange":{"min":"11","max":"4","step":"1"}})"),
             {kPolicy +
                  R"(.validRange.min: Invalid value: "11": min is larger than capacity value: 10)",
              kPolicy + R"(.validRange.max: Invalid value: "11": min is larger than max: 4)",
              kPolicy + R"(.validRange.max: Invalid value: "11": default is more than max: 4)",
              kPolicy + R"(.validRange.step: Invalid value: "1": one step 12 is larger than )"
                        "capacity value: 10"}},
        Case{with_policy(R"({"default":"1","validRange":{"min":"1","step":"0"}})"),
             {kPolicy + R"(.validRange.step: Invalid value: "0": must be greater than zero)"}},
        Case{with_policy(R"({"default":"9223372036854775807",)"
                         R"("validRange":{"min":"-9223372036854775807","step":"2"}})"),
             {}}));

INSTANTIATE_TEST_SUITE_P(
    BindingConditions, SliceRules,
    testing::Values(
        Case{add_to_spec("/devices/0/bindingConditions", R"(["a"])") + "," +
                 add_to_spec("/devices/0/bindingFailureConditions", R"(["b"])"),
             {}},
        Case{add_to_spec("/devices/0/bindingConditions", R"(["a"])"),
             {"spec.devices[0].bindingFailureConditions: Invalid value: null: "
              "bindingFailureConditions are required to use bindingConditions"}},
        Case{add_to_spec("/devices/0/bindingFailureConditions", R"(["a"])"),
             {"spec.devices[0].bindingConditions: Invalid value: null: bindingConditions are "
              "required to use bindingFailureConditions"}},
        Case{add_to_spec("/devices/0/bindingConditions", R"(["a","a"])") + "," +
                 add_to_spec("/devices/0/bindingFailureConditions", R"(["a","b","b"])"),
             {R"(spec.devices[0].bindingConditions[1]: Duplicate value: "a")",
              R"(spec.devices[0].bindingFailureConditions[0]: Invalid value: "a": )"
              "bindingFailureConditions must not overlap with bindingConditions",
              R"(spec.devices[0].bindingFailureConditions[2]: Duplicate value: "b")"}},
        Case{add_to_spec("/devices/0/bindingConditions", R"(["a","b","c","d","e"])") + "," +
                 add_to_spec("/devices/0/bindingFailureConditions", R"(["f"])"),
             {"spec.devices[0].bindingConditions: Too many: 5: must have at most 4 items"}}));

// --- claims

std::string requests(std::size_t size) {
  const auto request = [](const std::string& i) {
    return R"({"name":"r)" + i + R"(","exactly":{"deviceClassName":"d"}})";
  };
  return "[" + list(size, request) + "]";
}
std::string alternatives(const std::string& names) {
  std::string out;
  for (const char name : names) {
    out += (out.empty() ? "" : ",") + std::string(R"({"name":")") + name +
           R"(","deviceClassName":"d"})";
  }
  return R"([{"name":"r","firstAvailable":[)" + out + "]}]";
}
std::string config(const std::string& parameters) {
  return R"({"opaque":{"driver":"d.x","parameters":)" + parameters + "}}";
}
constexpr std::size_t kLongParameters = 10 * 1024;

INSTANTIATE_TEST_SUITE_P(
    Requests, ClaimRules,
    testing::Values(
        Case{add_to_spec("/devices/requests", requests(32)), {}},
        Case{add_to_spec("/devices/requests", requests(33)),
             {"spec.devices.requests: Too many: 33: must have at most 32 items"}},
        Case{add_to_spec("/devices/requests/0/exactly/selectors", copies(33, "{}")),
             {"spec.devices.requests[0].exactly.selectors: Too many: 33: must have at most 32 "
              "items"}},
        Case{
            add_to_spec("/devices/requests/0/exactly/selectors",
                        R"([{"cel":{"expression":")" + std::string(10 * 1024 + 1, ' ') + R"("}}])"),
            {"spec.devices.requests[0].exactly.selectors[0].cel.expression: Too long: may not be "
             "more than 10240 bytes"}},
        Case{add_to_spec("/devices/requests", alternatives("abcdefgh")), {}},
        Case{add_to_spec("/devices/requests", alternatives("abcdefghi")),
             {"spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items"}},
        Case{add_to_spec("/devices/requests", alternatives("aba")),
             {R"(spec.devices.requests[0].firstAvailable[2]: Duplicate value: "a")"}},
        Case{add_to_spec("/devices/requests", alternatives("a")) + "," +
                 add_to_spec("/devices/requests/0/exactly", R"({"deviceClassName":"D_"})"),
             {"spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or "
              "`firstAvailable` is required, but multiple fields are set"}},
        Case{add_to_spec("/devices/requests/0/exactly/tolerations",
                         R"([{"operator":"Exists"},{"key":"k"},{"operator":"Equal","value":"v",)"
                         R"("effect":"None"}])"),
             {}},
        Case{add_to_spec("/devices/requests/0/exactly/tolerations",
                         R"([{"operator":"Exists","value":"v"},{"operator":"Foo","effect":"X"}])"),
             {R"(spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must )"
              "be empty for operator `Exists`",
              R"(spec.devices.requests[0].exactly.tolerations[1].operator: Unsupported value: )"
              R"("Foo": supported values: "Equal", "Exists")",
              R"(spec.devices.requests[0].exactly.tolerations[1].effect: Unsupported value: "X": )"
              R"(supported values: "NoExecute", "NoSchedule", "None")"}}));

INSTANTIATE_TEST_SUITE_P(
    Constraints, ClaimRules,
    testing::Values(
        Case{add_to_spec("/devices/constraints", copies(33, R"({"matchAttribute":"e.x/a"})")),
             {"spec.devices.constraints: Too many: 33: must have at most 32 items"}},
        Case{add_to_spec("/devices/requests", alternatives("a")) + "," +
                 add_to_spec("/devices/constraints",
                             R"([{"requests":["r","r/a"],"distinctAttribute":"e.x/a"}])"),
             {}},
        Case{add_to_spec("/devices/constraints",
                         R"([{"requests":["R","r/a"],"matchAttribute":"e.x/a"}])"),
             {R"(spec.devices.constraints[0].requests[0]: Invalid value: "R")" + kLabel,
              R"(spec.devices.constraints[0].requests[0]: Invalid value: "R")" + kReference,
              R"(spec.devices.constraints[0].requests[1]: Invalid value: "r/a")" + kReference}},
        Case{add_to_spec("/devices/constraints", R"([{"matchAttribute":"foo"},)"
                                                 R"({"distinctAttribute":"a b/c-d"}])"),
             {R"(spec.devices.constraints[0].matchAttribute: Invalid value: "foo": a fully )"
              "qualified name must be a domain and a name separated by a slash",
              R"(spec.devices.constraints[1].distinctAttribute: Invalid value: "a b")" + kSubdomain,
              R"(spec.devices.constraints[1].distinctAttribute: Invalid value: "c-d")" +
                  kIdentifier}}));

INSTANTIATE_TEST_SUITE_P(
    Configs, ClaimRules,
    testing::Values(
        Case{add_to_spec("/devices/config", copies(33, config("{}"))),
             {"spec.devices.config: Too many: 33: must have at most 32 items"}},
        Case{add_to_spec("/devices/config", "[" + config("[1]") + "]"),
             {R"(spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must )"
              "be a valid JSON object"}},
        Case{add_to_spec("/devices/config",
                         "[" + config(R"({"a":")" + std::string(kLongParameters, 'x') + R"("})") +
                             "]"),
             {"spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 "
              "bytes"}}));

INSTANTIATE_TEST_SUITE_P(
    Classes, ClassRules,
    testing::Values(
        Case{add_to_spec("/selectors", copies(33, R"({"cel":{"expression":"true"}})")),
             {"spec.selectors: Too many: 33: must have at most 32 items"}},
        Case{add_to_spec("/config", copies(33, config("{}"))),
             {"spec.config: Too many: 33: must have at most 32 items"}},
        Case{add_to_spec("/config", "[" + config(R"("a")") + "]"),
             {R"(spec.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a )"
              "valid JSON object"}},
        Case{add_to_spec("/extendedResourceName", R"("example.com/gpu")"), {}},
        Case{add_to_spec("/extendedResourceName", R"("gpu")"),
             {R"(spec.extendedResourceName: Invalid value: "gpu": must be a valid extended )"
              "resource name"}},
        Case{add_to_spec("/extendedResourceName", R"("kubernetes.io/gpu")"),
             {R"(spec.extendedResourceName: Invalid value: "kubernetes.io/gpu": must be a valid )"
              "extended resource name"}},
        Case{add_to_spec("/extendedResourceName", R"("requests.example.com/gpu")"),
             {R"(spec.extendedResourceName: Invalid value: "requests.example.com/gpu": must be a )"
              "valid extended resource name"}}));

TEST_F(DeviceRules, TemplatesAreValidatedLikeClaims) {
  expect(kTemplates, kTemplate,
         {add_to_spec("/spec/devices/requests", alternatives("aa")),
          {R"(spec.spec.devices.requests[0].firstAvailable[1]: Duplicate value: "a")"}});
}

TEST_F(DeviceRules, ChangedClassesAreValidated) {
  create(kClasses, kClass);
  EXPECT_THAT(causes_of(merge(kClasses + "/d", R"({"spec":{"config":[)" + config("1") + "]}}")),
              ElementsAre(R"(spec.config[0].opaque.parameters: Invalid value: "<value omitted>": )"
                          "must be a valid JSON object"));
  const std::string valid = R"({"spec":{"config":[)" + config(R"({"a":1})") + "]}}";
  EXPECT_EQ(merge(kClasses + "/d", valid).code, 200);
}

/// Other errors of a spec that cannot change would be of no use.
TEST_F(DeviceRules, AChangedClaimReportsOnlyImmutability) {
  create(kClaims, kClaim);
  EXPECT_THAT(
      causes_of(merge(kClaims + "/c", R"({"spec":{"devices":{"requests":[{"name":"R"}]}}})")),
      ElementsAre(AllOf(StartsWith("spec: Invalid value: {"), EndsWith(": field is immutable"))));
}

// --- allocations

std::string allocation(const std::string& result, const std::string& configs = "[]") {
  return R"({"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d.x",)"
         R"("pool":"p","device":"a")" +
         result + R"(}],"config":)" + configs + "}}}}";
}

TEST_F(DeviceRules, AllocationsAreValidated) {
  create(kClaims, kClaim);
  const std::string path = kClaims + "/c/status";
  const std::string results = "status.allocation.devices.results[0].";
  const std::string configs = "status.allocation.devices.config";
  EXPECT_THAT(
      causes_of(
          merge(path, allocation(R"(,"bindingConditions":["a"],"tolerations":[{"operator":"Foo"}],)"
                                 R"("shareID":"x")",
                                 R"([{"source":"FromClass","requests":["r","r"],"opaque":)"
                                 R"({"driver":"d.x","parameters":[1]}},{"source":"FromClaim"}])"))),
      ElementsAre(
          results + "bindingFailureConditions: Invalid value: null: bindingFailureConditions are "
                    "required to use bindingConditions",
          results + R"(tolerations[0].operator: Unsupported value: "Foo": supported values: )"
                    R"("Equal", "Exists")",
          results + R"(shareID: Invalid value: "x": error validating uid: invalid UUID length: 1)",
          configs + R"([0].requests[1]: Duplicate value: "r")",
          configs + R"([0].opaque.parameters: Invalid value: "<value omitted>": must be a valid )"
                    "JSON object",
          configs + "[1].opaque: Required value"));
  EXPECT_THAT(causes_of(merge(path, allocation("", copies(65, "{}")))),
              ElementsAre(configs + ": Too many: 65: must have at most 64 items"));
}

TEST_F(DeviceRules, SharesOfDevicesAreUuids) {
  create(kClaims, kClaim);
  const std::string path = kClaims + "/c/status";
  const auto causes_for = [&](const std::string& id) {
    return causes_of(merge(path, allocation(R"(,"shareID":")" + id + R"(")")));
  };
  const auto refused = [](const std::string& id, const std::string& why) {
    return ElementsAre(R"(status.allocation.devices.results[0].shareID: Invalid value: ")" + id +
                       R"(": )" + why);
  };
  const std::string id = "0123abcd-0123-0123-0123-0123456789ab";
  const std::string normal =
      "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
      "lowercase hexadecimal characters";
  const std::string plain = "0123abcd01230123" + std::string(16, '0');
  const std::string capitals = "0123ABCD-0123-0123-0123-0123456789AB";
  EXPECT_THAT(causes_for(plain), refused(plain, normal));
  EXPECT_THAT(causes_for(capitals), refused(capitals, normal));
  EXPECT_THAT(causes_for("{" + id + "}"), refused("{" + id + "}", normal));
  EXPECT_THAT(causes_for("urn:uuid:" + id), refused("urn:uuid:" + id, normal));
  EXPECT_THAT(causes_for("(" + id + ")"),
              refused("(" + id + ")", "error validating uid: invalid bracketed UUID format"));
  EXPECT_THAT(
      causes_for("urn:uxid:" + id),
      refused("urn:uxid:" + id, R"(error validating uid: invalid urn prefix: "urn:uxid:")"));
  const std::string shifted = "0123abcd0-123-0123-0123-0123456789ab";
  EXPECT_THAT(causes_for(shifted), refused(shifted, "error validating uid: invalid UUID format"));
  EXPECT_THAT(causes_for(id), IsEmpty());
}

}  // namespace
}  // namespace lookout::apiserver
