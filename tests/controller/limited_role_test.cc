// Programs with roles in some namespaces only.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "lookout/controller/builder.h"
#include "lookout/controller/cache.h"
#include "tests/controller/manager_fixture.h"

namespace lookout::controller {
namespace {

using k8s::core::v1::Namespace;

class LimitedRoleTest : public RbacFixture {
 protected:
  /// Creates a namespace, and a role that lets the program use its ConfigMaps and Secrets.
  void allow(const std::string& ns, const std::string& verbs) const {
    const auto draft = Namespace::draft(ns);
    admin_.resource<Namespace>().create(draft);
    allow(ns, "r", R"([""],"resources":["configmaps","secrets"])", verbs);
  }
  void allow(const std::string& ns, const std::string& name, const std::string& what,
             const std::string& verbs) const {
    const std::string meta =
        R"("apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":")" + name + R"("})";
    const api::Resource roles("rbac.authorization.k8s.io", "v1", "Role", "roles", true);
    admin_.resource(roles, ns).create(api::Object::parse(fmt::format(
        R"({{{},"kind":"Role","rules":[{{"apiGroups":{},"verbs":[{}]}}]}})", meta, what, verbs)));
    const api::Resource bindings("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings",
                                 true);
    admin_.resource(bindings, ns)
        .create(api::Object::parse(fmt::format(
            R"({{{},"kind":"RoleBinding","roleRef":{{"apiGroup":"rbac.authorization.k8s.io",)"
            R"("kind":"Role","name":"{}"}},"subjects":[{{"kind":"ServiceAccount",)"
            R"("name":"program","namespace":"a"}}]}})",
            meta, name)));
  }
};

/// A reconciler that creates five Secrets, one in each run, and counts them.
auto creating_secrets(std::atomic<int>& writes, std::string ns) {
  return [&writes, ns = std::move(ns)](Request, Context& context) -> Result {
    if (writes == 5) return {};
    context.create(Secret::draft(fmt::format("s{}", writes.load()), ns));
    ++writes;
    return requeue_after(1ms);
  };
}

TEST_F(LimitedRoleTest, ASelectorOfOneNamespaceListsOnlyThat) {
  allow("a", R"("*")");
  const auto maps = admin_.resource<ConfigMap>("a");
  maps.create(ConfigMap::draft("m", "a"));
  const rest::Client client{server_.config_for_service_account("a", "program")};
  ManagerOptions options;
  options.cache.field_selector = "metadata.namespace=a";
  // A new leader compares its caches with lists of the server, which need the same permissions.
  Manager manager{client, options};
  std::atomic<int> runs{0};
  Builder<ConfigMap>(manager).reconcile(counting(runs));
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs > 0; }));
  // Reads of other namespaces return no objects.
  auto view = manager.cache().view();
  EXPECT_TRUE(view.find<ConfigMap>({"a", "m"}));
  EXPECT_FALSE(view.find<ConfigMap>({"b", "m"}));
}

TEST_F(LimitedRoleTest, AWriteToAForbiddenNamespaceDelaysNothing) {
  allow("a", R"("*")");
  allow("b", R"("create","patch")");
  admin_.resource<ConfigMap>("a").create(ConfigMap::draft("m", "a"));
  const rest::Client client{server_.config_for_service_account("a", "program")};
  ManagerOptions options;
  options.cache.namespaces = {"a", "b"};
  Manager manager{client, options};
  manager.cache().declare<Secret>();
  std::atomic<int> writes{0};
  Builder<ConfigMap>(manager).reconcile(creating_secrets(writes, "b"));
  const Running running(manager);
  // Otherwise each would take write_timeout.
  EXPECT_TRUE(eventually([&] { return writes == 5; }));
}

TEST_F(LimitedRoleTest, AWriteToAKindThatMayNotBeListedDelaysNothing) {
  admin_.resource<Namespace>().create(Namespace::draft("a"));
  allow("a", "maps", R"([""],"resources":["configmaps"])", R"("*")");
  allow("a", "secrets", R"([""],"resources":["secrets"])", R"("create")");
  const rest::Client client{server_.config_for_service_account("a", "program")};
  ManagerOptions options;
  options.cache.namespaces = {"a"};
  Manager manager{client, options};
  std::atomic<int> writes{0};
  const Controller controller =
      Builder<ConfigMap>(manager).reconcile(creating_secrets(writes, "a"));
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  controller.watch<Secret>([](const Secret&, Enqueue&) {}).release();
  admin_.resource<ConfigMap>("a").create(ConfigMap::draft("m", "a"));
  // Otherwise each would take write_timeout.
  EXPECT_TRUE(eventually([&] { return writes == 5; }));
}

TEST_F(LimitedRoleTest, ANewLeaderThatMayNotListStartsAtOnce) {
  // The watch delivers the initial state. (A list would be compared with it.)
  allow("a", R"("get","watch")");
  allow("a", "lease", R"(["coordination.k8s.io"],"resources":["leases"])", R"("*")");
  admin_.resource<ConfigMap>("a").create(ConfigMap::draft("m", "a"));
  const rest::Client client{server_.config_for_service_account("a", "program")};
  ManagerOptions options;
  options.cache.namespaces = {"a"};
  options.leader_election = LeaderElection{.name = "lease", .ns = "a"};
  Manager manager{client, options};
  std::atomic<int> runs{0};
  Builder<ConfigMap>(manager).reconcile(counting(runs));
  const Running running(manager);
  // Less than ManagerOptions::catch_up_timeout.
  EXPECT_TRUE(eventually([&] { return runs > 0; }));
}

}  // namespace
}  // namespace lookout::controller
