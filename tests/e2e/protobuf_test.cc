// Informers in protobuf and in JSON on the same server have equal objects, byte for byte: with the
// embedded server, and with a real kube-apiserver.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <memory>
#include <string>
#include <vector>

#include "lookout/api/resource.h"
#include "lookout/apiserver/server.h"
#include "lookout/informer/shared_informer_factory.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/eventually.h"
#include "tests/support/realistic_pods.h"

namespace lookout {
namespace {

using api::Object;
using rest::ContentType;

constexpr std::size_t kPods = 40;

/// The cached resources. A real server creates some of their objects itself.
const std::vector<api::Resource>& resources() {
  static const std::vector<api::Resource> kResources = [] {
    std::vector<api::Resource> out;
    for (const char* name :
         {"pods", "configmaps", "secrets", "services", "namespaces", "nodes", "serviceaccounts",
          "deployments.apps", "leases.coordination.k8s.io",
          "clusterroles.rbac.authorization.k8s.io", "endpoints",
          "priorityclasses.scheduling.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"})
      out.emplace_back(api::find_builtin_by_name(name)->type());
    return out;
  }();
  return kResources;
}

/// Paths, and the objects that are created there.
const std::vector<std::pair<const char*, const char*>>& some_objects() {
  static const std::vector<std::pair<const char*, const char*>> kObjects = {
      {"configmaps",
       R"({"metadata":{"name":"map"},"data":{"a":"<&>\u00e9\n"},"binaryData":{"b":"/wB6"}})"},
      {"secrets",
       R"({"metadata":{"name":"keys"},"data":{"password":"b3Blbg=="},"immutable":false})"},
      {"services",
       R"({"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},)"
       R"("ports":[{"name":"http","port":80,"targetPort":"http"},{"name":"x","port":81}]}})"},
      {"nodes", R"({"metadata":{"name":"n1","labels":{"zone":"a"}},"spec":{"taints":[{"key":"k",)"
                R"("effect":"NoSchedule"}]},"status":{"capacity":{"cpu":"4","memory":"16Gi"}}})"},
      {"deployments.apps",
       R"({"metadata":{"name":"web"},"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},)"
       R"("template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c",)"
       R"("image":"nginx:1","livenessProbe":{"httpGet":{"port":80}}}]}}}})"},
      {"leases.coordination.k8s.io",
       R"({"metadata":{"name":"lease"},"spec":{"renewTime":"2026-11-20T10:00:00.000001Z"}})"},
      {"customresourcedefinitions.apiextensions.k8s.io",
       R"({"metadata":{"name":"crontabs.stable.example.com"},"spec":{"group":"stable.example.com",)"
       R"("scope":"Namespaced","names":{"plural":"crontabs","kind":"CronTab","singular":"crontab",)"
       R"("listKind":"CronTabList"},"versions":[{"name":"v1","served":true,"storage":true,)"
       R"("schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",)"
       R"("properties":{"n":{"type":"integer","minimum":1,"default":3},"any":)"
       R"({"x-kubernetes-int-or-string":true},"m":{"type":"object","additionalProperties":)"
       R"({"type":"string"}}}}}}}}]}})"}};
  return kObjects;
}

rest::ResourceClient of(const rest::Client& client, const std::string& name) {
  const api::Resource resource(api::find_builtin_by_name(name)->type());
  return client.resource(resource, resource.namespaced ? "default" : "");
}

void fill(const rest::Client& client) {
  for (std::size_t i = 0; i < kPods; ++i)
    of(client, "pods").create(Object::parse(test::realistic_pod(i)));
  for (const auto& [name, object] : some_objects()) of(client, name).create(Object::parse(object));
}

void change(const rest::Client& client) {
  const auto pods = of(client, "pods");
  const auto name = [](std::size_t i) {
    return std::string(Object::parse(test::realistic_pod(i)).name());
  };
  for (std::size_t i = 0; i < 10; ++i) {
    pods.patch(name(i), rest::PatchType::kMerge, test::realistic_pod_status(i), {}, "status");
    pods.remove(name(10 + i), {.grace_period_seconds = 0});
    pods.create(Object::parse(test::realistic_pod(1000 + i)));
  }
  of(client, "configmaps").patch("map", rest::PatchType::kMerge, R"({"data":{"a":null,"c":"1"}})");
  of(client, "secrets").remove("keys");
}

/// The caches of one client.
class Caches {
 public:
  Caches(const rest::Config& config, ContentType type, bool watch_list, bool metadata_only = false)
      : client_(with(config, type)),
        factory_(client_, {.metadata_only = metadata_only, .use_watch_list = watch_list}) {
    for (const auto& resource : resources()) informers_.push_back(factory_.for_resource(resource));
    factory_.start();
  }

  bool wait() { return static_cast<bool>(factory_.wait_for_cache_sync()); }
  cache::Snapshot snapshot(std::size_t i) const { return informers_[i]->store().snapshot(); }
  /// Checks that no request was repeated.
  std::uint64_t errors() const {
    std::uint64_t out = 0;
    for (const auto& informer : informers_) out += informer->stats().errors;
    return out;
  }

 private:
  static rest::Config with(rest::Config config, ContentType type) {
    config.content_type = type;
    return config;
  }

  rest::Client client_;
  informer::SharedInformerFactory factory_;
  std::vector<std::shared_ptr<informer::SharedIndexInformer>> informers_;
};

/// In templates, the JSON of older servers has null creation times, which protobuf omits.
void drop_null_creation_times(rapidjson::Value& value) {
  if (value.IsArray()) {
    for (auto& element : value.GetArray()) drop_null_creation_times(element);
  } else if (value.IsObject()) {
    const auto time = value.FindMember("creationTimestamp");
    if (time != value.MemberEnd() && time->value.IsNull()) value.EraseMember(time);
    for (auto& member : value.GetObject()) drop_null_creation_times(member.value);
  }
}

bool same(const Object& json, const Object& other, bool old_server) {
  if (json == other) return true;
  if (!old_server) return false;
  rapidjson::Document document = json.to_document();
  drop_null_creation_times(document);
  return Object::from(document) == other;
}

/// The difference between two caches; empty if they are equal.
std::string difference(const Caches& a, const Caches& b, bool old_server) {
  for (std::size_t i = 0; i < resources().size(); ++i) {
    const auto left = a.snapshot(i);
    const auto right = b.snapshot(i);
    const std::string where = resources()[i].qualified_name();
    if (left.size() != right.size())
      return fmt::format("{}: {} and {}", where, left.size(), right.size());
    for (const auto& object : left) {
      const auto other = right.get(object.ns(), object.name());
      if (!same(object, other, old_server)) {
        return fmt::format("{} {}:\n{}\n{}", where, object.key(), object.to_json(),
                           other ? other.to_json() : "nothing");
      }
    }
  }
  return "";
}

void expect_the_same(const rest::Config& config, bool old_server) {
  const rest::Client writer(config);
  fill(writer);
  for (const bool metadata_only : {false, true}) {
    for (const bool watch_list : {true, false}) {
      Caches json(config, ContentType::kJson, watch_list, metadata_only);
      Caches protobuf(config, ContentType::kProtobuf, watch_list, metadata_only);
      Caches automatic(config, ContentType::kAuto, watch_list, metadata_only);
      for (Caches* caches : {&json, &protobuf, &automatic}) ASSERT_TRUE(caches->wait());
      const auto all_the_same = [&] {
        return difference(json, protobuf, old_server).empty() &&
               difference(json, automatic, old_server).empty();
      };
      // (A real server may still change some of them.)
      EXPECT_TRUE(test::eventually(all_the_same))
          << difference(json, protobuf, old_server) << difference(json, automatic, old_server);
      EXPECT_GT(json.snapshot(0).size(), 0u);
      EXPECT_EQ(protobuf.errors(), json.errors());
      EXPECT_EQ(automatic.errors(), json.errors()) << "nothing made it ask for JSON";
      if (metadata_only || watch_list) continue;
      change(writer);
      EXPECT_TRUE(test::eventually([&] {
        return json.snapshot(0).get("default",
                                    std::string(Object::parse(test::realistic_pod(1009)).name())) &&
               !json.snapshot(2).get("default", "keys") && all_the_same();
      })) << difference(json, protobuf, old_server)
          << difference(json, automatic, old_server);
    }
  }
}

TEST(ProtobufEndToEndTest, BothEncodingsAreEqualOnTheEmbeddedServer) {
  apiserver::Server server;
  expect_the_same(server.client_config(), false);
}

TEST(ProtobufEndToEndTest, BothEncodingsAreEqualOnARealServer) {
  const auto program = test::KubeApiserver::find_program();
  if (!program) {
    GTEST_SKIP() << "*** no kube-apiserver or no etcd: run scripts/build-kube-apiserver.sh and "
                    "install etcd-server to run this test ***";
  }
  test::KubeApiserver server(*program);
  expect_the_same(server.config(), true);
}

}  // namespace
}  // namespace lookout
