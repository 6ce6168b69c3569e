// Objects that a kube-apiserver 1.36 has stored: the creator's fields, from managedFields, must give the
// same objects here.
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "lookout/api/detail/json_values.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

using rapidjson::Document;
using Allocator = Document::AllocatorType;

std::string_view text(const rapidjson::Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

rapidjson::Value copy(const rapidjson::Value& value, Allocator& allocator) {
  return api::detail::deep_copy(value, allocator);
}

bool has_keys(const rapidjson::Value& element, const std::string& keys) {
  Document wanted;
  wanted.Parse(keys.c_str());
  for (const auto& key : wanted.GetObject()) {
    if (!element.HasMember(key.name) || element[key.name] != key.value) return false;
  }
  return true;
}

/// The part of a value that a set of fields names.
rapidjson::Value pick(const rapidjson::Value& value, const rapidjson::Value& fields,
                      Allocator& allocator) {
  const bool whole = std::none_of(fields.MemberBegin(), fields.MemberEnd(),
                                  [](const auto& f) { return text(f.name) != "."; });
  if (whole) return copy(value, allocator);
  rapidjson::Value out(value.GetType());
  for (const auto& field : fields.GetObject()) {
    const std::string name(text(field.name));
    if (name.starts_with("f:") && value.IsObject()) {
      const auto member = value.FindMember(name.substr(2).c_str());
      if (member == value.MemberEnd()) continue;
      out.AddMember(copy(member->name, allocator), pick(member->value, field.value, allocator),
                    allocator);
    } else if (name.starts_with("k:") && value.IsArray()) {
      for (const rapidjson::Value& element : value.GetArray()) {
        if (!has_keys(element, name.substr(2))) continue;
        rapidjson::Value picked = pick(element, field.value, allocator);
        Document keys;
        keys.Parse(name.substr(2).c_str());
        for (const auto& key : keys.GetObject()) {
          if (!picked.HasMember(key.name))
            picked.AddMember(copy(key.name, allocator), copy(key.value, allocator), allocator);
        }
        out.PushBack(picked, allocator);
      }
    } else if (name.starts_with("v:") && value.IsArray()) {
      Document wanted;
      wanted.Parse(name.substr(2).c_str());
      for (const rapidjson::Value& element : value.GetArray()) {
        if (element == wanted) out.PushBack(copy(element, allocator), allocator);
      }
    }
  }
  return out;
}

/// Removes values that differ in each run; replaces uids by "UID".
void normalize(rapidjson::Value& value, const std::string& uid, Allocator& allocator) {
  static const std::set<std::string, std::less<>> kOut = {
      "uid",           "resourceVersion",        "creationTimestamp",
      "managedFields", "lastTransitionTime",     "clusterIPs",
      "clusterIP",     "lastPhaseTransitionTime"};
  if (value.IsArray()) {
    for (rapidjson::Value& element : value.GetArray()) normalize(element, uid, allocator);
  } else if (value.IsObject()) {
    for (auto member = value.MemberBegin(); member != value.MemberEnd();) {
      if (kOut.contains(text(member->name))) {
        member = value.EraseMember(member);
      } else {
        normalize(member->value, uid, allocator);
        ++member;
      }
    }
    std::sort(value.MemberBegin(), value.MemberEnd(),
              [](const auto& a, const auto& b) { return text(a.name) < text(b.name); });
  } else if (value.IsString() && text(value) == uid) {
    value.SetString("UID");
  }
}

std::string normal_text(const api::Object& object) {
  Document document = object.to_document();
  normalize(document, std::string(object.uid()), document.GetAllocator());
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  document.Accept(writer);
  return buffer.GetString();
}

struct Recorded {
  const char* group;
  const char* version;
  const char* kind;
  const char* plural;
  bool namespaced;
};

class RecordedObjects : public ClientTest, public testing::WithParamInterface<Recorded> {};

TEST_P(RecordedObjects, AreCreatedEqually) {
  const Recorded& p = GetParam();
  const std::string prefix = *p.group == '\0' ? "" : std::string(p.group) + "_";
  const api::Object list = from_json(test::read_file(
      test::testdata("kube-1.36/list/" + prefix + p.version + "_" + p.plural + ".json")));
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  const api::Resource resource(p.group, p.version, p.kind, p.plural, p.namespaced);
  int compared = 0;
  for (const api::Value item : list["items"].elements()) {
    if (item["metadata"]["name"].as_string().starts_with("system-")) continue;  // they exist
    Document recorded;
    recorded.Parse(item.to_json().c_str());
    Document sent(rapidjson::kObjectType);
    // A request without a field manager manages no fields.
    const auto fields = recorded["metadata"].FindMember("managedFields");
    if (fields != recorded["metadata"].MemberEnd()) {
      sent.CopyFrom(pick(recorded, fields->value[0]["fieldsV1"], sent.GetAllocator()),
                    sent.GetAllocator());
    }
    if (!sent.HasMember("metadata"))
      sent.AddMember("metadata", rapidjson::Value(rapidjson::kObjectType), sent.GetAllocator());
    sent["metadata"].AddMember("name", copy(recorded["metadata"]["name"], sent.GetAllocator()),
                               sent.GetAllocator());
    const api::Object created =
        (p.namespaced ? in(resource, "shop") : all(resource)).create(api::Object::from(sent));
    recorded.AddMember("kind", rapidjson::Value(p.kind, recorded.GetAllocator()),
                       recorded.GetAllocator());
    recorded.AddMember("apiVersion",
                       rapidjson::Value(resource.api_version().c_str(), recorded.GetAllocator()),
                       recorded.GetAllocator());
    EXPECT_EQ(normal_text(created), normal_text(api::Object::from(recorded)));
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

INSTANTIATE_TEST_SUITE_P(
    All, RecordedObjects,
    testing::Values(
        Recorded{"", "v1", "ConfigMap", "configmaps", true},
        Recorded{"", "v1", "Endpoints", "endpoints", true},
        Recorded{"", "v1", "Event", "events", true},
        Recorded{"", "v1", "LimitRange", "limitranges", true},
        Recorded{"", "v1", "Node", "nodes", false},
        Recorded{"", "v1", "PersistentVolume", "persistentvolumes", false},
        Recorded{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true},
        Recorded{"", "v1", "ResourceQuota", "resourcequotas", true},
        Recorded{"", "v1", "Service", "services", true},
        Recorded{"", "v1", "ServiceAccount", "serviceaccounts", true},
        Recorded{"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                 "customresourcedefinitions", false},
        Recorded{"apps", "v1", "DaemonSet", "daemonsets", true},
        Recorded{"apps", "v1", "Deployment", "deployments", true},
        Recorded{"apps", "v1", "ReplicaSet", "replicasets", true},
        Recorded{"apps", "v1", "StatefulSet", "statefulsets", true},
        Recorded{"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true},
        Recorded{"batch", "v1", "CronJob", "cronjobs", true},
        Recorded{"batch", "v1", "Job", "jobs", true},
        Recorded{"coordination.k8s.io", "v1", "Lease", "leases", true},
        Recorded{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true},
        Recorded{"networking.k8s.io", "v1", "Ingress", "ingresses", true},
        Recorded{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true},
        Recorded{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true},
        Recorded{"rbac.authorization.k8s.io", "v1", "Role", "roles", true},
        Recorded{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true},
        Recorded{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false},
        Recorded{"storage.k8s.io", "v1", "StorageClass", "storageclasses", false}),
    [](const auto& one) { return std::string(one.param.kind); });

}  // namespace
}  // namespace lookout::apiserver
