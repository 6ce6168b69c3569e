// The generated views, with a real server's objects.
#include "lookout/api/typed_object.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/k8s/types.h"
#include "tests/api/recordings.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

/// The first object of a recorded list as this type; checks that the types match.
template <ResourceObject T>
T recorded() {
  const ResourceType type = T::kResource;
  const std::string name = (type.group.empty() ? "" : std::string(type.group) + "_") +
                           std::string(type.version) + "_" + std::string(type.plural);
  const auto list = test::decode_list(test::list_body(name));
  EXPECT_FALSE(list.items.empty()) << name;
  T object{list.items.at(0)};
  EXPECT_EQ(object.gvk(), Resource(type).gvk());
  EXPECT_EQ(object.ns().empty(), !type.namespaced);
  EXPECT_TRUE(object.metadata().creation_timestamp());
  EXPECT_EQ(object.metadata().uid(), object.uid());
  return object;
}

/// Copies the elements of a range of views.
template <class Range, class F>
auto collect(const Range& range, F f) {
  std::vector<std::string> out;
  for (const auto& one : range) out.emplace_back(f(one));
  return out;
}

std::vector<std::string> texts(const ListView<std::string_view>& list) {
  return {list.begin(), list.end()};
}

TEST(TypedObjectTest, Pod) {
  const auto pod = recorded<k8s::core::v1::Pod>();
  EXPECT_EQ(pod.key(), "shop2/p0");
  EXPECT_EQ(pod.metadata().labels()["app"], "web");
  EXPECT_EQ(format_time(*pod.metadata().creation_timestamp()), "2026-11-20T11:14:57Z");
  EXPECT_EQ(pod.metadata().generation(), 1);
  EXPECT_EQ(pod.metadata().managed_fields()[0].manager(), "lookout");
  EXPECT_FALSE(pod.metadata().deletion_timestamp());
  const auto spec = pod.spec();
  ASSERT_THAT(spec.containers(), SizeIs(1));
  EXPECT_EQ(spec.containers()[0].image(), "nginx:1.7.9");
  EXPECT_EQ(spec.containers()[0].ports()[0].container_port(), 80);
  EXPECT_EQ(spec.node_name(), "node-0");
  EXPECT_EQ(spec.termination_grace_period_seconds(), 30);
  EXPECT_EQ(spec.tolerations()[1].toleration_seconds(), 300);
  EXPECT_EQ(spec.priority(), 0);
  EXPECT_TRUE(spec.enable_service_links() == true);
  EXPECT_FALSE(spec.host_network().has_value());
  EXPECT_FALSE(spec.active_deadline_seconds());
  EXPECT_TRUE(spec.security_context());
  EXPECT_FALSE(spec.affinity());
  EXPECT_FALSE(
      spec.affinity().node_affinity().required_during_scheduling_ignored_during_execution());
  EXPECT_EQ(pod.status().phase(), "Running");
  EXPECT_EQ(pod.status().pod_ip(), "10.0.0.1");
  EXPECT_EQ(pod.status().pod_ips()[0].ip(), "10.0.0.1");
  EXPECT_FALSE(pod.status().start_time());
}

/// The members of one part with the views' results.
struct ReadPart {
  std::string_view part;
  std::vector<std::pair<std::string_view, Value>> values;
  std::vector<std::pair<std::string_view, std::string_view>> texts;
};

std::vector<ReadPart> read_parts(const k8s::core::v1::Pod& pod) {
  const auto metadata = pod.metadata();
  const auto spec = pod.spec();
  const auto status = pod.status();
  return {{"metadata",
           {{"labels", metadata.labels().as_value()},
            {"annotations", metadata.annotations().as_value()},
            {"finalizers", metadata.finalizers().as_value()},
            {"ownerReferences", metadata.owner_references().as_value()},
            {"managedFields", metadata.managed_fields().as_value()}},
           {{"name", metadata.name()},
            {"generateName", metadata.generate_name()},
            {"namespace", metadata.namespace_()},
            {"selfLink", metadata.self_link()},
            {"uid", metadata.uid()},
            {"resourceVersion", metadata.resource_version()}}},
          {"spec",
           {{"containers", spec.containers().as_value()},
            {"initContainers", spec.init_containers().as_value()},
            {"nodeSelector", spec.node_selector().as_value()},
            {"tolerations", spec.tolerations().as_value()},
            {"affinity", spec.affinity().as_value()},
            {"volumes", spec.volumes().as_value()}},
           {{"nodeName", spec.node_name()},
            {"restartPolicy", spec.restart_policy()},
            {"dnsPolicy", spec.dns_policy()},
            {"hostname", spec.hostname()},
            {"schedulerName", spec.scheduler_name()},
            {"serviceAccountName", spec.service_account_name()},
            {"priorityClassName", spec.priority_class_name()},
            {"runtimeClassName", spec.runtime_class_name()}}},
          {"status",
           {{"conditions", status.conditions().as_value()},
            {"podIPs", status.pod_ips().as_value()},
            {"containerStatuses", status.container_statuses().as_value()}},
           {{"podIP", status.pod_ip()},
            {"phase", status.phase()},
            {"message", status.message()},
            {"reason", status.reason()},
            {"hostIP", status.host_ip()},
            {"nominatedNodeName", status.nominated_node_name()},
            {"qosClass", status.qos_class()}}}};
}

/// Every field through the views, compared with a search through all members.
void expect_found_by_name(const k8s::core::v1::Pod& pod) {
  const auto member = [](Value object, std::string_view wanted) {
    for (const auto& [name, value] : object.members()) {
      if (name == wanted) return value;
    }
    return Value();
  };
  for (const auto& [part, values, texts] : read_parts(pod)) {
    const Value whole = member(pod.body(), part);
    for (const auto& [name, value] : values)
      EXPECT_EQ(value.data(), member(whole, name).data()) << part << '.' << name;
    for (const auto& [name, text] : texts)
      EXPECT_EQ(text, member(whole, name).as_string()) << part << '.' << name;
  }
}

// The header's offsets are shortcuts to some fields and those after them: for any combination of
// existing fields, they must give the same results.
TEST(TypedObjectTest, FieldsOfPartsOfAllShapes) {
  std::mt19937 random(1);
  const auto far = [&] { return random() % 40 == 0 ? std::string(70'000, 'x') : "x"; };
  const k8s::core::v1::Pod none;
  for (int i = 0; i < 500; ++i) {
    std::string json = "{";
    for (const auto& [part, values, texts] : read_parts(none)) {
      const auto one_of_twenty = random() % 20;
      if (one_of_twenty == 0) continue;
      if (json.size() > 1) json += ',';
      json.append("\"").append(part).append("\":");
      if (one_of_twenty < 4) {
        json += one_of_twenty == 1 ? "null" : one_of_twenty == 2 ? "{}" : "[\"nodeName\"]";
        continue;
      }
      std::vector<std::string> members;
      for (const auto& [name, _] : values) {
        if (random() % 2 == 0)
          members.push_back("\"" + std::string(name) + "\":{\"a\":\"" + far() + "\"}");
      }
      for (const auto& [name, _] : texts) {
        const std::string text = random() % 10 == 0 ? "7" : "\"" + std::string(name) + far() + "\"";
        if (random() % 2 == 0) members.push_back("\"" + std::string(name) + "\":" + text);
      }
      for (const std::string name : {"own", "f:name", "runtimeClassName", "zone"}) {
        if (random() % 4 == 0) members.push_back("\"" + name + "\":true");
      }
      std::shuffle(members.begin(), members.end(), random);
      json += '{';
      for (std::size_t k = 0; k < members.size(); ++k) json += (k == 0 ? "" : ",") + members[k];
      json += '}';
    }
    expect_found_by_name(k8s::core::v1::Pod(Object::parse(json + "}")));
  }
  expect_found_by_name(none);
}

// A template's spec is not the object's spec, so it must not use the header's offsets.
TEST(TypedObjectTest, TheSameClassBelowTheParts) {
  const k8s::apps::v1::Deployment deployment(Object::parse(
      R"({"metadata":{"name":"outer","labels":{"of":"outer"}},"spec":{"nodeName":"outer",)"
      R"("template":{"metadata":{"name":"inner","labels":{"of":"inner"}},)"
      R"("spec":{"nodeName":"inner","schedulerName":"s"}}}})"));
  EXPECT_EQ(deployment.metadata().labels()["of"], "outer");
  const auto inner = deployment.spec().pod_template();
  EXPECT_EQ(inner.metadata().name(), "inner");
  EXPECT_EQ(inner.metadata().labels()["of"], "inner");
  EXPECT_EQ(inner.spec().node_name(), "inner");
  EXPECT_EQ(inner.spec().scheduler_name(), "s");
}

TEST(TypedObjectTest, Workloads) {
  const auto deployment = recorded<k8s::apps::v1::Deployment>();
  EXPECT_EQ(deployment.spec().replicas(), 3);
  EXPECT_EQ(deployment.spec().selector().match_labels()["app"], "web");
  EXPECT_EQ(deployment.spec().strategy().rolling_update().max_surge().scaled(3, true), 1);
  EXPECT_EQ(deployment.metadata().annotations()["note"], "first\nsecond");
  const auto container = deployment.spec().pod_template().spec().containers()[0];
  EXPECT_EQ(container.resources().limits()["memory"].value(), 128 << 20);
  EXPECT_EQ(container.resources().requests()["cpu"].milli_value(), 100);
  EXPECT_EQ(container.env()[1].value_from().secret_key_ref().key(), "user");
  EXPECT_EQ(container.readiness_probe().http_get().port().string_value(), "http");
  EXPECT_EQ(container.readiness_probe().period_seconds(), 5);

  EXPECT_EQ(lookout::test::held(recorded<k8s::apps::v1::DaemonSet>())
                .spec()
                .update_strategy()
                .rolling_update()
                .max_unavailable()
                .int_value(),
            1);
  EXPECT_EQ(lookout::test::held(recorded<k8s::apps::v1::DaemonSet>()).status().number_ready(), 0);
  EXPECT_EQ(lookout::test::held(recorded<k8s::apps::v1::ReplicaSet>())
                .spec()
                .pod_template()
                .metadata()
                .labels()["app"],
            "rs");

  const auto set = recorded<k8s::apps::v1::StatefulSet>();
  EXPECT_EQ(set.spec().service_name(), "db");
  const auto claim = set.spec().volume_claim_templates()[0];
  EXPECT_EQ(claim.metadata().name(), "data");
  EXPECT_THAT(texts(claim.spec().access_modes()), ElementsAre("ReadWriteOnce"));
  EXPECT_EQ(claim.spec().resources().requests()["storage"], Quantity::parse("1Gi"));

  const auto job = recorded<k8s::batch::v1::Job>();
  EXPECT_EQ(job.spec().backoff_limit(), 2);
  EXPECT_TRUE(job.spec().suspend() == false);
  EXPECT_THAT(texts(job.spec().pod_template().spec().containers()[0].command()),
              ElementsAre("sh", "-c", "exit 0"));
  EXPECT_EQ(lookout::test::held(recorded<k8s::batch::v1::CronJob>()).spec().schedule(),
            "0 3 * * *");
  EXPECT_EQ(lookout::test::held(recorded<k8s::batch::v1::CronJob>())
                .spec()
                .job_template()
                .spec()
                .pod_template()
                .spec()
                .restart_policy(),
            "Never");

  const auto scaler = recorded<k8s::autoscaling::v2::HorizontalPodAutoscaler>();
  EXPECT_EQ(scaler.spec().scale_target_ref().name(), "web");
  EXPECT_EQ(scaler.spec().max_replicas(), 5);
  EXPECT_EQ(scaler.spec().metrics()[0].resource().target().average_utilization(), 80);
  EXPECT_TRUE(scaler.status().current_metrics().empty());

  EXPECT_EQ(lookout::test::held(recorded<k8s::policy::v1::PodDisruptionBudget>())
                .spec()
                .min_available()
                .scaled(5, true),
            3);
  EXPECT_EQ(recorded<k8s::scheduling::v1::PriorityClass>().value(), 1000);
}

TEST(TypedObjectTest, Networking) {
  const auto service = recorded<k8s::core::v1::Service>();
  EXPECT_EQ(service.spec().cluster_ip(), "10.0.158.239");
  EXPECT_EQ(service.spec().selector()["app"], "web");
  EXPECT_THAT(
      collect(service.spec().ports(), [](const auto& p) { return p.target_port().to_string(); }),
      ElementsAre("http", "9000"));
  EXPECT_TRUE(service.status().load_balancer());
  EXPECT_TRUE(service.status().load_balancer().ingress().empty());

  const auto slice = recorded<k8s::discovery::v1::EndpointSlice>();
  EXPECT_EQ(slice.address_type(), "IPv4");
  EXPECT_EQ(slice.endpoints()[0].addresses()[0], "10.1.2.3");
  EXPECT_TRUE(slice.endpoints()[0].conditions().ready() == true);
  EXPECT_TRUE(slice.endpoints()[0].conditions().terminating() == false);
  EXPECT_EQ(slice.endpoints()[0].zone(), "sh001");
  EXPECT_EQ(slice.ports()[0].port(), 80);

  EXPECT_EQ(
      lookout::test::held(recorded<k8s::core::v1::Endpoints>()).subsets()[0].addresses()[0].ip(),
      "10.1.2.3");
  const auto ingress = recorded<k8s::networking::v1::Ingress>();
  EXPECT_EQ(ingress.spec().rules()[0].host(), "shop.example");
  EXPECT_EQ(ingress.spec().rules()[0].http().paths()[0].backend().service().port().number(), 80);
  const auto policy = recorded<k8s::networking::v1::NetworkPolicy>();
  EXPECT_THAT(texts(policy.spec().policy_types()), ElementsAre("Ingress"));
  EXPECT_TRUE(policy.spec().pod_selector());
  EXPECT_TRUE(policy.spec().ingress().empty());
}

TEST(TypedObjectTest, ConfigurationAndStorage) {
  const auto config = recorded<k8s::core::v1::ConfigMap>();
  EXPECT_TRUE(config.immutable() == false);
  EXPECT_EQ(config.data()["app.properties"],
            "color=blue\nquote=\"q\"\nunicode=\xC3\xA9\xE6\xBC\xA2\xE5\xAD\x97\xF0\x9F\x9A\x80\n");
  EXPECT_EQ(config.data().find("empty"), "");
  EXPECT_EQ(config.data().find("none"), std::nullopt);
  EXPECT_EQ(config.binary_data()["blob"].decode(), std::string("\0\x01\x02\x03\x04\xFF", 6));
  EXPECT_EQ(lookout::test::held(recorded<k8s::core::v1::Secret>()).data()["password"].decode(),
            "p@ss");
  EXPECT_EQ(recorded<k8s::core::v1::Secret>().type(), "Opaque");

  EXPECT_EQ(lookout::test::held(recorded<k8s::core::v1::PersistentVolume>())
                .spec()
                .capacity()["storage"]
                .to_string(),
            "10Gi");
  EXPECT_EQ(
      lookout::test::held(recorded<k8s::core::v1::PersistentVolume>()).spec().host_path().path(),
      "/data");
  EXPECT_TRUE(lookout::test::held(recorded<k8s::core::v1::PersistentVolume>())
                  .status()
                  .last_phase_transition_time());
  EXPECT_EQ(lookout::test::held(recorded<k8s::core::v1::PersistentVolumeClaim>()).status().phase(),
            "Pending");
  EXPECT_THAT(texts(lookout::test::held(recorded<k8s::core::v1::PersistentVolumeClaim>())
                        .metadata()
                        .finalizers()),
              ElementsAre("kubernetes.io/pvc-protection"));
  EXPECT_EQ(recorded<k8s::storage::v1::StorageClass>().provisioner(), "example.com/fast");
  EXPECT_EQ(lookout::test::held(recorded<k8s::core::v1::ResourceQuota>())
                .spec()
                .hard()["requests.cpu"]
                .value(),
            4);
  EXPECT_EQ(lookout::test::held(recorded<k8s::core::v1::LimitRange>())
                .spec()
                .limits()[0]
                .default_()["cpu"]
                .milli_value(),
            500);
}

TEST(TypedObjectTest, TheCluster) {
  const auto node = recorded<k8s::core::v1::Node>();
  EXPECT_EQ(node.spec().pod_cidr(), "10.1.0.0/24");
  EXPECT_THAT(collect(node.spec().taints(), [](const auto& t) { return t.key(); }),
              ElementsAre("dedicated", "node.kubernetes.io/not-ready"));
  EXPECT_EQ(node.status().daemon_endpoints().kubelet_endpoint().port(), 0);
  EXPECT_EQ(lookout::test::held(recorded<k8s::core::v1::Namespace>()).status().phase(), "Active");
  EXPECT_EQ(recorded<k8s::core::v1::ServiceAccount>().name(), "robot");
  EXPECT_TRUE(lookout::test::held(recorded<k8s::core::v1::ServiceAccount>()).secrets().empty());

  const auto event = recorded<k8s::core::v1::Event>();
  EXPECT_EQ(event.involved_object().name(), "web");
  EXPECT_EQ(event.reason(), "Scaled");
  EXPECT_EQ(event.count(), 2);
  EXPECT_EQ(*event.last_timestamp() - *event.first_timestamp(), std::chrono::seconds(9));
  EXPECT_FALSE(event.event_time()) << "null";
  EXPECT_EQ(event.source().component(), "deployment-controller");

  const auto lease = recorded<k8s::coordination::v1::Lease>();
  EXPECT_EQ(lease.spec().holder_identity(), "a");
  EXPECT_EQ(lease.spec().lease_duration_seconds(), 15);
  EXPECT_EQ(format_micro_time(*lease.spec().renew_time()), "2026-11-20T10:00:10.654321Z");

  EXPECT_THAT(texts(lookout::test::held(recorded<k8s::rbac::v1::Role>()).rules()[0].verbs()),
              ElementsAre("get", "list", "watch"));
  EXPECT_EQ(lookout::test::held(recorded<k8s::rbac::v1::RoleBinding>()).role_ref().name(),
            "reader");
  EXPECT_EQ(lookout::test::held(recorded<k8s::rbac::v1::RoleBinding>()).subjects()[0].kind(),
            "ServiceAccount");

  const auto crd = recorded<k8s::apiextensions::v1::CustomResourceDefinition>();
  EXPECT_EQ(crd.spec().names().plural(), "crontabs");
  EXPECT_TRUE(crd.spec().versions()[0].served());
  EXPECT_EQ(crd.status().conditions()[1].type(), "Established");
  const auto properties = crd.spec().versions()[0].schema().open_apiv3_schema().properties();
  EXPECT_EQ(properties["spec"].properties()["replicas"].type(), "integer");
  EXPECT_TRUE(properties["status"].x_kubernetes_preserve_unknown_fields() == true);
}

/// A hand-written type.
class CronTab : public TypedObject {
 public:
  using TypedObject::TypedObject;
  static constexpr ResourceType kResource{"stable.example.com", "v1", "CronTab", "crontabs", true};
  std::string_view cron_spec() const { return (*this)["spec"]["cronSpec"].as_string(); }
  std::int64_t replicas() const { return (*this)["spec"]["replicas"].as_int(); }
};

TEST(TypedObjectTest, ACustomResource) {
  const auto tab = recorded<CronTab>();
  EXPECT_FALSE(tab.cron_spec().empty());
  EXPECT_EQ(Object(tab),
            test::decode_list(test::list_body("stable.example.com_v1_crontabs")).items[0]);
}

TEST(TypedObjectTest, AnEmptyObjectReadsAsAbsent) {
  const k8s::core::v1::Pod pod;
  EXPECT_FALSE(pod);
  EXPECT_EQ(pod.key(), "");
  EXPECT_FALSE(pod.spec());
  EXPECT_TRUE(pod.spec().containers().empty());
  EXPECT_EQ(pod.spec().containers()[0].name(), "");
  EXPECT_FALSE(pod.metadata().labels().contains("app"));
  EXPECT_FALSE(pod.metadata().creation_timestamp());
}

TEST(TypedObjectTest, ValuesOfAnotherTypeReadAsAbsent) {
  const k8s::core::v1::Pod pod(Object::parse(
      R"({"kind":"Pod","spec":{"containers":"none","nodeName":7,"priority":"high","hostNetwork":1},)"
      R"("metadata":{"creationTimestamp":"yesterday","labels":["x"],"generation":1e30}})"));
  EXPECT_TRUE(pod.spec().containers().empty());
  EXPECT_EQ(pod.spec().node_name(), "");
  EXPECT_EQ(pod.spec().priority(), std::nullopt);
  EXPECT_FALSE(pod.spec().host_network().has_value());
  EXPECT_FALSE(pod.metadata().creation_timestamp());
  EXPECT_TRUE(pod.metadata().labels().empty());
  EXPECT_EQ(pod.metadata().generation(), std::nullopt);
}

}  // namespace
}  // namespace lookout::api
