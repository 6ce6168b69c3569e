// DefaultAdmission: kube-apiserver's default admission plugins that depend on other objects.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission/pod_security.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::admission {

/// The pod security of a request's namespace. For requests that do not write pods or pod templates,
/// reads nothing and allows everything.
Awaitable<PodSecurity> read_pod_security(std::shared_ptr<const resources::ResourceTable> table,
                                         resources::Target target, std::string subresource);

/// The plugin PodTopologyLabels: adds the node's region and zone labels to `object`, a pod or a
/// Binding, unless it has its own.
Awaitable<api::Object> with_topology_labels(std::shared_ptr<const resources::ResourceTable> table,
                                            std::string node, api::Object object);

/// The plugins DefaultStorageClass, DefaultIngressClass, PersistentVolumeClaimResize,
/// PodTopologyLabels (of pods), Priority (of PriorityClasses), RuntimeClass and PodSecurity; they
/// surround the next admission. Lives as long as one request.
class DefaultAdmission final : public resources::Admission {
 public:
  /// `wanted` is the object of a creation, empty for other requests; `security` is what
  /// read_pod_security() returns. `next` and `warnings` must outlive it.
  DefaultAdmission(resources::Admission& next,
                   std::shared_ptr<const resources::ResourceTable> table, resources::Target target,
                   std::string_view subresource, api::Object wanted, PodSecurity security,
                   std::vector<std::string>& warnings);

  bool concerns(resources::Write::Operation operation) const override;
  Awaitable<api::Object> mutate(resources::Write write, Normalize normalize) override;
  Awaitable<void> validate(resources::Write write) override;

 private:
  enum class Topic { kOther, kPod, kTemplate, kClaim, kIngress, kPriorityClass, kNamespace };
  static Topic topic_of(const api::Resource& type, std::string_view subresource);
  friend Awaitable<PodSecurity> read_pod_security(std::shared_ptr<const resources::ResourceTable>,
                                                  resources::Target, std::string);

  /// Whether a plugin may apply.
  bool has_work(resources::Write::Operation operation) const;
  /// A new object with the defaults from its classes.
  Awaitable<api::Object> complete(api::Object object) const;
  using Completion = std::function<Awaitable<api::Object>(api::Object object)>;
  /// The same after the earlier plugins.
  Awaitable<api::Object> complete_again(Completion earlier, api::Object object) const;
  Awaitable<void> check(resources::Write write);
  /// The RuntimeClass of a pod; empty if there is none.
  Awaitable<api::Object> runtime_class_of(api::Object pod) const;
  Awaitable<void> check_growth(resources::Write write) const;
  Awaitable<void> check_namespace(resources::Write write);
  void check_pod(const resources::Write& write);
  void warn_of(api::Value metadata, api::Value spec);

  resources::Admission& next_;
  const std::shared_ptr<const resources::ResourceTable> table_;
  const resources::Target target_;
  const Topic topic_;
  const api::Object wanted_;
  const PodSecurity security_;
  std::vector<std::string>& warnings_;
};

}  // namespace lookout::apiserver::admission
