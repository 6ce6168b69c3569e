// A cluster with pods for tests of registries: the embedded server, in this process.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"

namespace lookout::registry::test {

// The names that tests of registries use.
using namespace std::chrono_literals;
using lookout::test::eventually;
using lookout::test::Gate;

/// Far longer than any successful operation takes.
inline constexpr auto kLong = 60s;

/// The properties of a pod.
struct PodTemplate {
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> annotations = {};
  /// JSON of spec.containers[0].ports.
  std::string ports = R"([{"containerPort":80}])";
  /// Empty: not scheduled, and the status is not written.
  std::string ip = "10.0.0.1";
  std::string phase = "Running";
  bool ready = true;
};

/// Labels of a kratos service.
PodTemplate kratos_pod(const std::string& service, const std::string& id,
                       const std::string& ip = "10.0.0.1", const std::string& version = "v1");

class Cluster {
 public:
  explicit Cluster(apiserver::ServerOptions options = {});

  const rest::Client& client() const { return client_; }
  apiserver::Server& server() { return *server_; }
  const std::shared_ptr<apiserver::storage::Backend>& storage() const { return storage_; }
  rest::ResourceClient pods(const std::string& ns = "default") const;

  void create_namespace(const std::string& ns) const;
  /// Creates a pod as a client does, and writes its status as a kubelet does.
  void create_pod(const std::string& name, const PodTemplate& pod,
                  const std::string& ns = "default") const;
  void set_status(const std::string& name, const std::string& ip, const std::string& phase,
                  bool ready, const std::string& ns = "default") const;
  /// Merge patch.
  api::Object patch_pod(const std::string& name, const std::string& patch,
                        const std::string& ns = "default") const;
  void label(const std::string& name, const std::string& label, const std::string& value,
             const std::string& ns = "default") const;
  void annotate(const std::string& name, const std::string& annotation, const std::string& value,
                const std::string& ns = "default") const;
  /// At once, without a grace period.
  void remove_pod(const std::string& name, const std::string& ns = "default") const;

  /// Stops the server, and starts it again at the same address with the same storage.
  void stop_server();
  void start_server();

 private:
  apiserver::ServerOptions options_;
  std::shared_ptr<apiserver::storage::Backend> storage_;
  std::unique_ptr<apiserver::Server> server_;
  rest::Client client_;
};

/// Takes sets from a watcher until one satisfies the condition; null if none comes.
template <class Condition>
InstanceSetPtr next_that(Watcher& watcher, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  for (;;) {
    const NextResult result = watcher.next({}, deadline);
    if (!result) {
      ADD_FAILURE() << "no such set came: " << to_string(result.outcome());
      return nullptr;
    }
    if (condition(*result)) return result.set();
  }
}

/// The "id" of each instance, in the order of the set.
std::vector<std::string> ids(const InstanceSet& set);

}  // namespace lookout::registry::test
