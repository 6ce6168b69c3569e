// The kind that the controller of controller_replicas_test reconciles, and a built-in replacement
// for servers that do not support custom resources.
#pragma once

#include <cstdint>
#include <string_view>

#include "lookout/api/draft.h"
#include "lookout/api/object.h"
#include "lookout/api/typed_object.h"
#include "lookout/k8s/apps/v1.h"

namespace lookout::test {

class WebsiteDraft;

struct Website : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"example.com", "v1", "Website", "websites", true};
  WebsiteDraft edit() const;
};

class WebsiteDraft : public api::ObjectDraft {
 public:
  explicit WebsiteDraft(const Website& original) : ObjectDraft(original) {}
  Website build() const { return Website(ObjectDraft::build()); }
};

inline WebsiteDraft Website::edit() const { return WebsiteDraft(*this); }

using k8s::apps::v1::ReplicaSet;

inline std::string_view image_of(const Website& site LOOKOUT_LIFETIME_BOUND) {
  return site["spec"]["image"].as_string();
}
inline std::string_view image_of(const ReplicaSet& site LOOKOUT_LIFETIME_BOUND) {
  return site["spec"]["template"]["spec"]["containers"][0]["image"].as_string();
}
inline std::int32_t replicas_of(const api::Object& site) {
  return static_cast<std::int32_t>(site["spec"]["replicas"].as_int(1));
}

/// Removed by the controller when the Deployment and the ConfigMap of a site are gone.
inline constexpr std::string_view kFinalizer = "example.com/website";
/// On every object that the controller writes: "IDENTITY TOKEN NUMBER", with the fencing token of
/// the leader and the number of the write.
inline constexpr std::string_view kWriter = "example.com/writer";

/// The Lease of the controller.
inline constexpr const char* kLease = "website";
/// The exit status of a controller that has lost its lease.
inline constexpr int kLostLease = 3;

}  // namespace lookout::test
