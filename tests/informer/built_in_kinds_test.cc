// Typed informers and listers of every kind that a Kubernetes API server serves with the verb
// watch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/types.h"

namespace lookout::informer {
namespace {

template <class... T>
struct Types {};

using Watchable = Types<
    k8s::admissionregistration::v1::MutatingAdmissionPolicy,
    k8s::admissionregistration::v1::MutatingAdmissionPolicyBinding,
    k8s::admissionregistration::v1::MutatingWebhookConfiguration,
    k8s::admissionregistration::v1::ValidatingAdmissionPolicy,
    k8s::admissionregistration::v1::ValidatingAdmissionPolicyBinding,
    k8s::admissionregistration::v1::ValidatingWebhookConfiguration,
    k8s::apiextensions::v1::CustomResourceDefinition, k8s::apiregistration::v1::APIService,
    k8s::apps::v1::ControllerRevision, k8s::apps::v1::DaemonSet, k8s::apps::v1::Deployment,
    k8s::apps::v1::ReplicaSet, k8s::apps::v1::StatefulSet,
    k8s::autoscaling::v1::HorizontalPodAutoscaler, k8s::autoscaling::v2::HorizontalPodAutoscaler,
    k8s::batch::v1::CronJob, k8s::batch::v1::Job, k8s::certificates::v1::CertificateSigningRequest,
    k8s::coordination::v1::Lease, k8s::core::v1::ConfigMap, k8s::core::v1::Endpoints,
    k8s::core::v1::Event, k8s::core::v1::LimitRange, k8s::core::v1::Namespace, k8s::core::v1::Node,
    k8s::core::v1::PersistentVolume, k8s::core::v1::PersistentVolumeClaim, k8s::core::v1::Pod,
    k8s::core::v1::PodTemplate, k8s::core::v1::ReplicationController, k8s::core::v1::ResourceQuota,
    k8s::core::v1::Secret, k8s::core::v1::Service, k8s::core::v1::ServiceAccount,
    k8s::discovery::v1::EndpointSlice, k8s::events::v1::Event, k8s::flowcontrol::v1::FlowSchema,
    k8s::flowcontrol::v1::PriorityLevelConfiguration, k8s::networking::v1::IPAddress,
    k8s::networking::v1::Ingress, k8s::networking::v1::IngressClass,
    k8s::networking::v1::NetworkPolicy, k8s::networking::v1::ServiceCIDR,
    k8s::node::v1::RuntimeClass, k8s::policy::v1::PodDisruptionBudget, k8s::rbac::v1::ClusterRole,
    k8s::rbac::v1::ClusterRoleBinding, k8s::rbac::v1::Role, k8s::rbac::v1::RoleBinding,
    k8s::resource::v1::DeviceClass, k8s::resource::v1::ResourceClaim,
    k8s::resource::v1::ResourceClaimTemplate, k8s::resource::v1::ResourceSlice,
    k8s::scheduling::v1::PriorityClass, k8s::storage::v1::CSIDriver, k8s::storage::v1::CSINode,
    k8s::storage::v1::CSIStorageCapacity, k8s::storage::v1::StorageClass,
    k8s::storage::v1::VolumeAttachment, k8s::storage::v1::VolumeAttributesClass>;

std::string path(const api::ResourceType& type) {
  const api::Resource resource(type);
  return resource.root_path() + "/" + resource.plural;
}

/// Creates the informer and the lister of this type; returns the path that the informer watches.
template <class T>
std::string look_at(SharedInformerFactory& factory) {
  const SharedInformer<T> informer = factory.informer<T>();
  EXPECT_EQ(&informer.untyped_informer(), factory.for_resource(T::kResource).get());
  EXPECT_EQ(factory
                .for_resource(api::resource_for(api::GroupVersionResource{
                    std::string(T::kResource.group), std::string(T::kResource.version),
                    std::string(T::kResource.plural)}))
                .get(),
            &informer.untyped_informer());
  const lister::Lister<T> lister = informer.lister();
  EXPECT_TRUE(lister.list().empty());
  EXPECT_FALSE(T::kResource.namespaced ? lister.ns("shop").find("x") : lister.find("x"));
  return path(T::kResource);
}

template <class... T>
std::set<std::string> look_at_all(SharedInformerFactory& factory, Types<T...>) {
  return {look_at<T>(factory)...};
}

TEST(BuiltInKindsTest, HaveTypedInformersAndListers) {
  rest::Config config;
  config.server = "http://127.0.0.1:1";  // no request is made
  SharedInformerFactory factory{rest::Client(config)};
  std::set<std::string> all;
  for (const api::ResourceInfo& info : api::builtin_resources()) {
    const auto verbs = api::split_list(info.verbs);
    if (std::find(verbs.begin(), verbs.end(), "watch") != verbs.end())
      all.insert(path(info.type()));
  }
  EXPECT_GT(all.size(), 50u);
  EXPECT_EQ(look_at_all(factory, Watchable{}), all) << "one is missing in this test";
}

}  // namespace
}  // namespace lookout::informer
