// Typed informers and listers of everything that a Kubernetes API server has and can be watched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "lookout/api/types.h"
#include "lookout/informer/shared_informer_factory.h"

namespace lookout::informer {
namespace {

template <class... T>
struct Types {};

using Watchable = Types<
    admissionregistration::v1::MutatingAdmissionPolicy,
    admissionregistration::v1::MutatingAdmissionPolicyBinding,
    admissionregistration::v1::MutatingWebhookConfiguration,
    admissionregistration::v1::ValidatingAdmissionPolicy,
    admissionregistration::v1::ValidatingAdmissionPolicyBinding,
    admissionregistration::v1::ValidatingWebhookConfiguration,
    apiextensions::v1::CustomResourceDefinition, apiregistration::v1::APIService,
    apps::v1::ControllerRevision, apps::v1::DaemonSet, apps::v1::Deployment, apps::v1::ReplicaSet,
    apps::v1::StatefulSet, autoscaling::v1::HorizontalPodAutoscaler,
    autoscaling::v2::HorizontalPodAutoscaler, batch::v1::CronJob, batch::v1::Job,
    certificates::v1::CertificateSigningRequest, coordination::v1::Lease, core::v1::ConfigMap,
    core::v1::Endpoints, core::v1::Event, core::v1::LimitRange, core::v1::Namespace, core::v1::Node,
    core::v1::PersistentVolume, core::v1::PersistentVolumeClaim, core::v1::Pod,
    core::v1::PodTemplate, core::v1::ReplicationController, core::v1::ResourceQuota,
    core::v1::Secret, core::v1::Service, core::v1::ServiceAccount, discovery::v1::EndpointSlice,
    events::v1::Event, flowcontrol::v1::FlowSchema, flowcontrol::v1::PriorityLevelConfiguration,
    networking::v1::IPAddress, networking::v1::Ingress, networking::v1::IngressClass,
    networking::v1::NetworkPolicy, networking::v1::ServiceCIDR, node::v1::RuntimeClass,
    policy::v1::PodDisruptionBudget, rbac::v1::ClusterRole, rbac::v1::ClusterRoleBinding,
    rbac::v1::Role, rbac::v1::RoleBinding, resource::v1::DeviceClass, resource::v1::ResourceClaim,
    resource::v1::ResourceClaimTemplate, resource::v1::ResourceSlice, scheduling::v1::PriorityClass,
    storage::v1::CSIDriver, storage::v1::CSINode, storage::v1::CSIStorageCapacity,
    storage::v1::StorageClass, storage::v1::VolumeAttachment, storage::v1::VolumeAttributesClass>;

std::string path(const api::ResourceType& type) {
  const api::Resource resource(type);
  return resource.root_path() + "/" + resource.plural;
}

/// The informer of this type, and its lister; the path of what it watches.
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
  config.server = "http://127.0.0.1:1";  // nobody asks it for anything
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
