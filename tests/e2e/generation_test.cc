// metadata.generation of every built-in kind: which changes increase it, and that an update without a
// change writes nothing. The same steps with the embedded server and with a real kube-apiserver.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout {
namespace {

using api::Object;

/// The steps for an object, in this order.
enum Step {
  kCreate,
  kSame,        ///< PUT of the stored object
  kAgain,       ///< PUT of the created object, without the server's defaults
  kAnnotation,  ///< a merge patch each
  kLabel,
  kStatus,  ///< of the subresource, if there is one
  kSpec,
  kFinalizer,
  kDelete,
  kSteps
};
constexpr const char* kNames[] = {"create", "same", "again",     "annotation", "label",
                                  "status", "spec", "finalizer", "delete"};

/// The result of each step: the generation, "-" for none, followed by "=" if nothing was written; "!" if
/// the step was rejected, "." if it does not apply.
///
///                                 create same again annotation label status spec finalizer delete
constexpr const char* kNothing = "     -     -=   -=    -          -     .     -    -         - ";
constexpr const char* kSpecCounts = "  1     1=   1=    1          1     .     2    2         3 ";
constexpr const char* kWithStatus = "  1     1=   1=    1          1     1     2    2         3 ";
constexpr const char* kAnnotations = " 1     1=   1=    2          2     2     3    3         4 ";
constexpr const char* kLabels = "      1     1=   1=    1          2     .     3    3         4 ";
constexpr const char* kOnce = "        1     1=   1=    1          1     .     1    1         2 ";
constexpr const char* kLater = "       -     -=   -=    -          -     .     1    1         2 ";

/// 1.20 writes the object once more to record the owner of the finalizers that its admission adds
/// (managedFields).
constexpr const char* kWritesFields = "- - - - - - - - -";

struct Kind {
  std::string group;
  std::string version;
  std::string plural;
  /// The request body, without type and name.
  std::string object;
  /// A merge patch outside of metadata; empty: no field can be changed.
  std::string spec;
  /// A merge patch of the status.
  std::string status;
  /// The expected result, as of 1.36.
  const char* counts;
  /// For the real server: its version of the resource; empty: the same; "none": not served.
  std::string real_version = {};
  /// The real server's result if it differs from 1.36; null: the same.
  const char* real_counts = nullptr;
  /// Controllers of the real server write the object, too.
  bool others_write = false;
  std::string name = "gen";
};

const char* const kTemplate =
    R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}})";

std::string workload(const std::string& more = "") {
  return fmt::format(R"({{"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},{}{}}}}})", kTemplate,
                     more);
}

const std::vector<Kind>& kinds() {
  const std::string policy = R"({"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],)"
                             R"("apiVersions":["v1"],"operations":["CREATE"],)"
                             R"("resources":["pods"]}]})";
  const std::string webhooks =
      R"({"webhooks":[{"name":"w.example.com","clientConfig":{"url":"https://localhost/x"},)"
      R"("sideEffects":"None","admissionReviewVersions":["v1"],"failurePolicy":"Ignore"}]})";
  const std::string definition =
      R"({"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"gens",)"
      R"("singular":"gen","kind":"Gen","listKind":"GenList"},"versions":[{"name":"v1",)"
      R"("served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})";
  const std::string role = R"({"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})";
  const auto binding = [](const char* kind) {
    return fmt::format(
        R"({{"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"{}","name":"x"}}}})", kind);
  };
  const std::string subjects =
      R"({"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"x"}]})";
  static const std::vector<Kind> kKinds = {
      {"", "v1", "configmaps", R"({"data":{"a":"1"}})", R"({"data":{"a":"2"}})", "", kNothing},
      {"", "v1", "endpoints", "{}",
       R"({"subsets":[{"addresses":[{"ip":"10.1.1.1"}],"ports":[{"port":80}]}]})", "", kNothing},
      {"", "v1", "events", R"({"involvedObject":{"namespace":"default","kind":"Pod","name":"a"}})",
       R"({"message":"more"})", "", kNothing},
      {"", "v1", "limitranges", R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"100"}}]}})",
       R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"200"}}]}})", "", kNothing},
      {"", "v1", "namespaces", "{}", "", R"({"status":{"phase":"Active"}})",
       "- -= -= - - -= . - -"},
      {"", "v1", "nodes", "{}", R"({"spec":{"unschedulable":true}})",
       R"({"status":{"phase":"Running"}})", "- -= - - - - - - -"},
      {"", "v1", "persistentvolumeclaims",
       R"({"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})",
       R"({"spec":{"volumeName":"v"}})", R"({"status":{"phase":"Lost"}})", "- -= - - - - - - -", "",
       kWritesFields},
      {"", "v1", "persistentvolumes",
       R"({"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],)"
       R"("hostPath":{"path":"/x"}}})",
       R"({"spec":{"persistentVolumeReclaimPolicy":"Delete"}})", R"({"status":{"phase":"Failed"}})",
       "- -= - - - - - - -", "", kWritesFields},
      {"", "v1", "pods", R"({"spec":{"containers":[{"name":"a","image":"b"}]}})",
       R"({"spec":{"activeDeadlineSeconds":100}})", R"({"status":{"phase":"Running"}})",
       kWithStatus, "", "- -= -= - - - - - -"},
      {"", "v1", "podtemplates", fmt::format("{{{}}}", kTemplate),
       R"({"template":{"metadata":{"labels":{"a":"c"}}}})", "", kSpecCounts, "", kNothing},
      {"", "v1", "replicationcontrollers",
       fmt::format(R"({{"spec":{{"selector":{{"a":"b"}},{}}}}})", kTemplate),
       R"({"spec":{"replicas":3}})", R"({"status":{"replicas":3}})", kWithStatus},
      {"", "v1", "resourcequotas", R"({"spec":{"hard":{"pods":"100"}}})",
       R"({"spec":{"hard":{"pods":"200"}}})", R"({"status":{"used":{"pods":"1"}}})",
       "- -= -= - - - - - -"},
      {"", "v1", "secrets", R"({"data":{"a":"YQ=="}})", R"({"data":{"a":"Yg=="}})", "", kNothing},
      {"", "v1", "serviceaccounts", "{}", R"({"automountServiceAccountToken":false})", "",
       kNothing},
      {"", "v1", "services", R"({"spec":{"selector":{"a":"b"},"ports":[{"port":80}]}})",
       R"({"spec":{"selector":{"a":"c"}}})",
       R"({"status":{"loadBalancer":{"ingress":[{"ip":"10.1.1.1"}]}}})", "- -= -= - - ! - - -", "",
       "- -= ! - - - - - -"},
      {"apiregistration.k8s.io", "v1", "apiservices",
       R"({"spec":{"group":"gen.example.com","version":"v1","groupPriorityMinimum":1000,)"
       R"("versionPriority":10,"service":{"name":"s","namespace":"default"},)"
       R"("insecureSkipTLSVerify":true}})",
       R"({"spec":{"versionPriority":11}})", "", kNothing, "", nullptr, true, "v1.gen.example.com"},
      {"apps", "v1", "controllerrevisions", R"({"revision":1,"data":{}})", R"({"revision":2})", "",
       kNothing},
      {"apps", "v1", "daemonsets", workload(), R"({"spec":{"minReadySeconds":3}})",
       R"({"status":{"numberReady":1}})", kWithStatus},
      {"apps", "v1", "daemonsets", workload(),
       R"({"spec":{"template":{"metadata":{"labels":{"c":"d"}}}}})",
       R"({"status":{"numberReady":1}})", kWithStatus},
      {"apps", "v1", "deployments", workload(), R"({"spec":{"replicas":3}})",
       R"({"status":{"replicas":1}})", kAnnotations},
      {"apps", "v1", "replicasets", workload(), R"({"spec":{"replicas":3}})",
       R"({"status":{"replicas":1}})", kWithStatus},
      {"apps", "v1", "statefulsets", workload(R"(,"serviceName":"s")"),
       R"({"spec":{"replicas":3}})", R"({"status":{"replicas":1}})", kWithStatus},
      {"events.k8s.io", "v1", "events",
       R"({"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/c",)"
       R"("reportingInstance":"i","action":"a","reason":"r","type":"Normal",)"
       R"("regarding":{"namespace":"default","kind":"Pod","name":"x"}})",
       R"({"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}})", "", kNothing},
      {"autoscaling", "v1", "horizontalpodautoscalers",
       R"({"spec":{"scaleTargetRef":{"kind":"Deployment","name":"x","apiVersion":"apps/v1"},)"
       R"("maxReplicas":3}})",
       R"({"spec":{"maxReplicas":4}})", R"({"status":{"currentReplicas":1,"desiredReplicas":2}})",
       "- -= -= - - - - - -"},
      {"autoscaling", "v2", "horizontalpodautoscalers",
       R"({"spec":{"scaleTargetRef":{"kind":"Deployment","name":"x","apiVersion":"apps/v1"},)"
       R"("maxReplicas":3}})",
       R"({"spec":{"maxReplicas":4}})", R"({"status":{"desiredReplicas":2}})",
       "- -= -= - - - - - -", "none"},
      {"batch", "v1", "cronjobs",
       fmt::format(R"({{"spec":{{"schedule":"1 * * * *","jobTemplate":{{"spec":{{"template":{{)"
                   R"("spec":{{"restartPolicy":"Never","containers":[{{"name":"a","image":"b"}}])"
                   R"(}}}}}}}}}}}})"),
       R"({"spec":{"schedule":"2 * * * *"}})",
       R"({"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}})", kWithStatus, "v1beta1",
       "- -= -= - - - - - -"},
      {"batch", "v1", "jobs",
       R"({"spec":{"template":{"spec":{"restartPolicy":"Never",)"
       R"("containers":[{"name":"a","image":"b"}]}}}})",
       R"({"spec":{"parallelism":2}})", R"({"status":{"active":1}})", "1 1= ! 1 1 1 2 2 3", "",
       "- - ! - - - - - -"},
      {"networking.k8s.io", "v1", "ingressclasses", R"({"spec":{"controller":"example.com/c"}})",
       R"({"spec":{"parameters":{"kind":"X","name":"y","apiGroup":"example.com"}}})", "",
       kSpecCounts},
      {"networking.k8s.io", "v1", "ingresses",
       R"({"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})",
       R"({"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":81}}}}})",
       R"({"status":{"loadBalancer":{"ingress":[{"ip":"10.1.1.1"}]}}})", kWithStatus},
      {"networking.k8s.io", "v1", "ipaddresses",
       R"({"spec":{"parentRef":{"resource":"services","name":"x","namespace":"default"}}})", "", "",
       "- -= -= - - . . - -", "none", nullptr, false, "10.0.0.77"},
      {"networking.k8s.io", "v1", "networkpolicies", R"({"spec":{"podSelector":{}}})",
       R"({"spec":{"podSelector":{"matchLabels":{"a":"b"}}}})", "", kSpecCounts},
      {"networking.k8s.io", "v1", "servicecidrs", R"({"spec":{"cidrs":["10.5.0.0/24"]}})", "", "",
       "- -= -= - - . . - -", "none"},
      {"policy", "v1", "poddisruptionbudgets",
       R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})",
       R"({"spec":{"minAvailable":2}})", R"({"status":{"currentHealthy":1}})", kWithStatus,
       "v1beta1"},
      {"rbac.authorization.k8s.io", "v1", "clusterrolebindings", binding("ClusterRole"), subjects,
       "", kNothing},
      {"rbac.authorization.k8s.io", "v1", "clusterroles", R"({"rules":[]})", role, "", kNothing},
      {"rbac.authorization.k8s.io", "v1", "rolebindings", binding("Role"), subjects, "", kNothing},
      {"rbac.authorization.k8s.io", "v1", "roles", R"({"rules":[]})", role, "", kNothing},
      {"storage.k8s.io", "v1", "csidrivers", R"({"spec":{"attachRequired":false}})",
       R"({"spec":{"requiresRepublish":true}})", "", kLater, "", "- -= -= - - . - - -"},
      {"storage.k8s.io", "v1", "csinodes", R"({"spec":{"drivers":[]}})",
       R"({"spec":{"drivers":[{"name":"d.example.com","nodeID":"n"}]}})", "", kNothing},
      {"storage.k8s.io", "v1", "csistoragecapacities", R"({"storageClassName":"s"})",
       R"({"capacity":"1Gi"})", "", kNothing, "none"},
      {"storage.k8s.io", "v1", "storageclasses", R"({"provisioner":"example.com/x"})",
       R"({"allowVolumeExpansion":true})", "", kNothing},
      {"storage.k8s.io", "v1", "volumeattachments",
       R"({"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"v"}}})", "",
       R"({"status":{"attached":true}})", "- -= -= - - - . - -"},
      {"storage.k8s.io", "v1", "volumeattributesclasses",
       R"({"driverName":"d.example.com","parameters":{"a":"b"}})", "", "", "- -= - - - . . - -",
       "none"},
      {"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", webhooks,
       R"({"webhooks":[]})", "", kSpecCounts},
      {"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", webhooks,
       R"({"webhooks":[]})", "", kSpecCounts},
      {"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies",
       policy + R"(,"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch",)"
                R"("jsonPatch":{"expression":"[]"}}]}})",
       R"({"spec":{"failurePolicy":"Ignore"}})", "", kSpecCounts, "none"},
      {"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings",
       R"({"spec":{"policyName":"a"}})", R"({"spec":{"policyName":"b"}})", "", kSpecCounts, "none"},
      {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
       policy + R"(,"validations":[{"expression":"true"}]}})",
       R"({"spec":{"failurePolicy":"Ignore"}})", R"({"status":{"observedGeneration":1}})",
       kWithStatus, "none"},
      {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
       R"({"spec":{"policyName":"a","validationActions":["Deny"]}})",
       R"({"spec":{"policyName":"b"}})", "", kSpecCounts, "none"},
      {"apiextensions.k8s.io", "v1", "customresourcedefinitions", definition,
       R"({"spec":{"names":{"shortNames":["g"]}}})", "", "1 1= 1= 1 1 . 2 2 2", "", nullptr, true,
       "gens.example.com"},
      {"scheduling.k8s.io", "v1", "priorityclasses", R"({"value":5})", R"({"description":"x"})", "",
       kOnce},
      {"coordination.k8s.io", "v1", "leases", R"({"spec":{"holderIdentity":"a"}})",
       R"({"spec":{"holderIdentity":"b"}})", "", kNothing},
      {"node.k8s.io", "v1", "runtimeclasses", R"({"handler":"h"})",
       R"({"overhead":{"podFixed":{"cpu":"1"}}})", "", kNothing},
      {"discovery.k8s.io", "v1", "endpointslices",
       R"({"addressType":"IPv4","endpoints":[{"addresses":["10.1.1.1"]}]})",
       R"({"endpoints":[{"addresses":["10.1.1.2"]}]})", "", kLabels, "v1beta1", kSpecCounts},
      {"resource.k8s.io", "v1", "deviceclasses", R"({"spec":{}})",
       R"({"spec":{"selectors":[{"cel":{"expression":"true"}}]}})", "", kSpecCounts, "none"},
      {"resource.k8s.io", "v1", "resourceclaims", R"({"spec":{}})", "", "", "- -= -= - - . . - -",
       "none"},
      {"resource.k8s.io", "v1", "resourceclaimtemplates", R"({"spec":{"spec":{}}})", "", "",
       "- -= -= - - . . - -", "none"},
      {"resource.k8s.io", "v1", "resourceslices",
       R"({"spec":{"driver":"d.example.com","nodeName":"n",)"
       R"("pool":{"name":"p","generation":1,"resourceSliceCount":1}}})",
       R"({"spec":{"pool":{"generation":2}}})", "", kSpecCounts, "none"},
      {"flowcontrol.apiserver.k8s.io", "v1", "flowschemas",
       R"({"spec":{"priorityLevelConfiguration":{"name":"exempt"},"matchingPrecedence":9000}})",
       R"({"spec":{"matchingPrecedence":9001}})", "", kSpecCounts, "v1beta1", nullptr, true},
      {"flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations",
       R"({"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}})",
       R"({"spec":{"limited":{"limitResponse":{"type":"Queue","queuing":{}}}}})", "", kSpecCounts,
       "v1beta1", nullptr, true},
  };
  return kKinds;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

/// Runs the steps of one kind with one server.
class Story {
 public:
  Story(const rest::Client& client, const Kind& kind, const std::string& version)
      : kind_(kind), objects_(client.resource(resource_of(kind, version), "default")) {}

  std::vector<std::string> tell() {
    std::vector<std::string> out(kSteps, ".");
    const auto first = Object::parse(kind_.object);
    out[kCreate] = step([&] { return objects_.create(named(first)); }, {});
    out[kSame] = step([&] { return objects_.update(objects_.get(kind_.name)); }, current());
    out[kAgain] = step(
        [&] {
          const std::string version(objects_.get(kind_.name).resource_version());
          return objects_.update(named(first, version));
        },
        current());
    out[kAnnotation] = patch(R"({"metadata":{"annotations":{"example.com/a":"b"}}})");
    out[kLabel] = patch(R"({"metadata":{"labels":{"example.com/a":"b"}}})");
    if (!kind_.status.empty()) out[kStatus] = patch(kind_.status, "status");
    if (!kind_.spec.empty()) out[kSpec] = patch(kind_.spec);
    out[kFinalizer] = patch(R"({"metadata":{"finalizers":["example.com/wait"]}})");
    out[kDelete] = step(
        [&] {
          objects_.remove(kind_.name);
          return objects_.get(kind_.name);
        },
        {});
    patch(R"({"metadata":{"finalizers":null}})");
    return out;
  }

 private:
  static api::Resource resource_of(const Kind& kind, const std::string& version) {
    for (const api::ResourceInfo& info : api::builtin_resources()) {
      if (info.group == kind.group && info.plural == kind.plural) {
        return {kind.group, version, std::string(info.kind), kind.plural, info.type().namespaced};
      }
    }
    throw std::runtime_error("no such kind: " + kind.plural);
  }

  Object named(const Object& object, const std::string& version = "") const {
    rapidjson::Document document = object.to_document();
    auto& allocator = document.GetAllocator();
    rapidjson::Value metadata(rapidjson::kObjectType);
    metadata.AddMember("name", rapidjson::Value(kind_.name.c_str(), allocator), allocator);
    if (!version.empty())
      metadata.AddMember("resourceVersion", rapidjson::Value(version.c_str(), allocator),
                         allocator);
    document.AddMember("metadata", metadata, allocator);
    return Object::from(document);
  }

  std::string current() const {
    try {
      return std::string(objects_.get(kind_.name).resource_version());
    } catch (const api::StatusError&) {
      return {};
    }
  }

  std::string patch(const std::string& body, const std::string& subresource = "") {
    return step(
        [&] { return objects_.patch(kind_.name, rest::PatchType::kMerge, body, {}, subresource); },
        current());
  }

  template <class Do>
  std::string step(Do act, const std::string& before) const {
    for (int attempt = 0;; ++attempt) {
      try {
        const Object after = act();
        const std::int64_t generation = after["metadata"]["generation"].as_int();
        const bool written = before != after.resource_version();
        return (generation == 0 ? "-" : std::to_string(generation)) +
               (written || kind_.others_write ? "" : "=");
      } catch (const api::StatusError& e) {
        // Controllers of the real server write, too.
        if (api::is_conflict(e) && attempt < 20) continue;
        if (std::getenv("LOOKOUT_TEST_VERBOSE") != nullptr)
          fmt::print(stderr, "{}: {}\n", kind_.plural, e.what());
        return "!";
      }
    }
  }

  const Kind& kind_;
  const rest::ResourceClient objects_;
};

/// The expected result, in the same form.
std::string text_of(const std::vector<std::string>& words) {
  std::string out;
  for (int step = 0; step < kSteps; ++step) {
    out += fmt::format("{} {}, ", kNames[step],
                       words.size() == kSteps ? words[static_cast<std::size_t>(step)] : "?");
  }
  return out;
}

std::string expected(const Kind& kind, const char* counts) {
  std::vector<std::string> words = words_of(counts);
  for (auto& word : words) {
    if (kind.others_write && word.ends_with('=')) word.pop_back();
  }
  return text_of(words);
}

/// The effect of a generation that the client sends, at creation and in an update.
std::string said_by_clients(const rest::Client& client) {
  std::string out;
  const auto tell = [&](const api::Resource& resource, const std::string& rest) {
    const auto objects = client.resource(resource, "default");
    const auto with = [&](int generation) {
      return Object::parse(
          fmt::format(R"({{"metadata":{{"name":"said","generation":{}}},{}}})", generation, rest));
    };
    out += fmt::format(
        " {}", lookout::test::held(objects.create(with(5)))["metadata"]["generation"].as_int());
    out += fmt::format(
        " {}", lookout::test::held(objects.update(with(9)))["metadata"]["generation"].as_int());
  };
  tell({"", "v1", "ConfigMap", "configmaps", true}, R"("data":{"a":"b"})");
  tell({"", "v1", "ServiceAccount", "serviceaccounts", true},
       R"("automountServiceAccountToken":false)");
  tell({"apps", "v1", "Deployment", "deployments", true},
       workload().substr(1, workload().size() - 2));
  return out;
}

TEST(Generation, CoversEveryBuiltInKind) {
  for (const api::ResourceInfo& info : api::builtin_resources()) {
    if (info.verbs.find("watch") == std::string_view::npos ||
        info.plural.starts_with("certificate"))
      continue;
    const bool there = std::any_of(kinds().begin(), kinds().end(), [&](const Kind& kind) {
      return kind.group == info.group && kind.plural == info.plural && kind.version == info.version;
    });
    EXPECT_TRUE(there) << info.plural << "." << info.group << " " << info.version;
  }
}

TEST(Generation, OfTheEmbeddedServerEqualsKubernetes136) {
  apiserver::Server server;
  const rest::Client client(server.client_config());
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(fmt::format("{}.{} {}", kind.plural, kind.group, kind.version));
    EXPECT_EQ(text_of(Story(client, kind, kind.version).tell()), expected(kind, kind.counts));
  }
}

TEST(RealGeneration, EqualsTheExpectedResults) {
  const auto program = test::KubeApiserver::find_program();
  if (!program) GTEST_SKIP() << test::kNoKubeApiserver;
  const test::KubeApiserver server(*program);
  const rest::Client client(server.config());
  EXPECT_EQ(said_by_clients(client), " 5 5 5 5 1 1");
  for (const Kind& kind : kinds()) {
    if (kind.real_version == "none") continue;
    SCOPED_TRACE(fmt::format("{}.{} {}", kind.plural, kind.group, kind.version));
    const std::string& version = kind.real_version.empty() ? kind.version : kind.real_version;
    EXPECT_EQ(text_of(Story(client, kind, version).tell()),
              expected(kind, kind.real_counts != nullptr ? kind.real_counts : kind.counts));
  }
}

TEST(Generation, OfClientsIsKeptIfTheServerDoesNotSetIt) {
  apiserver::Server server;
  EXPECT_EQ(said_by_clients(rest::Client(server.client_config())), " 5 5 5 5 1 1");
}

// ------------------------------------------------------------------------------ custom resources

/// With and without a status subresource.
void check_custom(const rest::Client& client, bool subresource) {
  const std::string plural = subresource ? "withs" : "withouts";
  const std::string kind = subresource ? "With" : "Without";
  client
      .resource({"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                 "customresourcedefinitions", false})
      .create(Object::parse(fmt::format(
          R"({{"metadata":{{"name":"{0}.example.com"}},"spec":{{"group":"example.com",)"
          R"("scope":"Namespaced","names":{{"plural":"{0}","kind":"{1}"}},"versions":[{{)"
          R"("name":"v1","served":true,"storage":true,{2}"schema":{{"openAPIV3Schema":{{)"
          R"("type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}]}}}})",
          plural, kind, subresource ? R"("subresources":{"status":{}},)" : "")));
  const auto objects = client.resource({"example.com", "v1", kind, plural, true}, "default");
  const auto there = [&] {
    try {
      objects.list({});
      return true;
    } catch (const api::StatusError&) {
      return false;
    }
  };
  ASSERT_TRUE(test::eventually(there));
  const auto generation = [](const Object& object) {
    return object["metadata"]["generation"].as_int();
  };
  const auto patch = [&](const std::string& body, const std::string& of = "") {
    return generation(objects.patch("a", rest::PatchType::kMerge, body, {}, of));
  };
  Object object = objects.create(Object::parse(fmt::format(
      R"({{"apiVersion":"example.com/v1","kind":"{}","metadata":{{"name":"a"}},"spec":{{"a":1}},)"
      R"("status":{{"b":1}}}})",
      kind)));
  EXPECT_EQ(generation(object), 1);
  const Object same = objects.update(object);
  EXPECT_EQ(same.resource_version(), object.resource_version());
  EXPECT_EQ(patch(R"({"metadata":{"annotations":{"a":"b"},"labels":{"a":"b"}}})"), 1);
  EXPECT_EQ(patch(R"({"status":{"b":2}})"), subresource ? 1 : 2);
  if (subresource) {
    EXPECT_EQ(patch(R"({"status":{"b":3}})", "status"), 1);
  }
  EXPECT_EQ(patch(R"({"spec":{"a":2}})"), subresource ? 2 : 3);
  EXPECT_EQ(patch(R"({"other":1})"), subresource ? 3 : 4);
}

class CustomGeneration : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Status, CustomGeneration, testing::Bool(),
                         [](const auto& p) { return p.param ? "Subresource" : "NoSubresource"; });

TEST_P(CustomGeneration, EmbeddedServer) {
  apiserver::Server server;
  check_custom(rest::Client(server.client_config()), GetParam());
}

// (Not with the real 1.20: built with Go 1.18 or later it crashes when it writes a custom
// resource.)

}  // namespace
}  // namespace lookout
