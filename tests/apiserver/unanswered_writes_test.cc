// Writes without a response from the storage: effects on cluster IPs, ports and quotas.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/memory.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/passing_storage.h"

namespace lookout::apiserver {
namespace {

/// A memory storage that does not respond to some requests for one resource.
class SilentBackend final : public PassingBackend {
 public:
  enum class Loss { kNone, kRequest, kAnswer };

  explicit SilentBackend(std::string place) : PassingBackend(std::move(place)) {}

  /// The next write of the resource fails: it is not executed, or executed without a response.
  void lose_next(Loss loss) { next_ = loss; }
  /// Objects of the resource cannot be read either until comes_back().
  void goes_away() { is_away_ = true; }
  void comes_back() { is_away_ = false; }

 private:
  class Silent final : public storage::PassingInterface {
   public:
    Silent(SilentBackend& all, storage::Interface& inner) : PassingInterface(inner), all_(all) {}

    Awaitable<Object> create(std::string key, Object object) override {
      return write(PassingInterface::create(std::move(key), std::move(object)));
    }
    Awaitable<Object> get(std::string key, storage::Revision revision) override {
      if (all_.is_away_) throw no_answer();
      return PassingInterface::get(std::move(key), revision);
    }
    Awaitable<Object> guaranteed_update(std::string key, bool create_if_absent,
                                        storage::Preconditions preconditions,
                                        Update update) override {
      return write(PassingInterface::guaranteed_update(
          std::move(key), create_if_absent, std::move(preconditions), std::move(update)));
    }
    Awaitable<Object> remove(std::string key, storage::Preconditions preconditions,
                             Validate validate) override {
      return write(
          PassingInterface::remove(std::move(key), std::move(preconditions), std::move(validate)));
    }

   private:
    static storage::StorageError no_answer() {
      return {storage::StorageError::Code::kTimeout, "/registry/anything"};
    }
    Awaitable<Object> write(Awaitable<Object> call) {
      const Loss loss = all_.next_.exchange(Loss::kNone);
      if (loss == Loss::kRequest) throw no_answer();
      Object written = co_await std::move(call);
      if (loss == Loss::kAnswer) throw no_answer();
      co_return written;
    }

    SilentBackend& all_;
  };

  std::unique_ptr<storage::Interface> wrap(storage::Interface& inner) override {
    return std::make_unique<Silent>(*this, inner);
  }

  std::atomic<Loss> next_{Loss::kNone};
  std::atomic<bool> is_away_{false};
};

using Loss = SilentBackend::Loss;

TEST(UnansweredWrites, DelayTheInitialObjects) {
  for (const Loss loss : {Loss::kRequest, Loss::kAnswer}) {
    const auto storage = std::make_shared<SilentBackend>("clusterroles");
    storage->lose_next(loss);
    ServerOptions options;
    options.storage = storage;
    options.bootstrap = true;
    const Server server(options);
    const rest::Client client(server.client_config());
    const api::Resource roles("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles",
                              false);
    EXPECT_TRUE(client.resource(roles).find("cluster-admin"));
    EXPECT_TRUE(client.resource(roles).find("view"));
  }
}

constexpr const char* kServicesPath = "/api/v1/namespaces/default/services";

std::string service_json(const std::string& name, const std::string& spec) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}}}}})", name, spec);
}

/// A service with this cluster IP.
std::string service_at(const std::string& name, const std::string& address) {
  return service_json(name, fmt::format(R"("clusterIP":"{}","ports":[{{"port":80}}])", address));
}

std::string with_node_port(int port) {
  return fmt::format(R"("type":"NodePort","ports":[{{"port":80,"nodePort":{}}}])", port);
}

/// A server on such a storage, and clients without retries.
class SilentServer {
 public:
  explicit SilentServer(const std::string& place)
      : storage_(std::make_shared<SilentBackend>(place)), server_(options_on(storage_)) {}

  SilentBackend& storage() { return *storage_; }
  int post(const std::string& path, const std::string& body) const {
    return http(server_.port(), "POST", path, body).code;
  }
  int patch(const std::string& path, const std::string& spec) const {
    return http(server_.port(), "PATCH", path, fmt::format(R"({{"spec":{{{}}}}})", spec),
                {{"Content-Type", "application/merge-patch+json"}})
        .code;
  }
  int remove(const std::string& path) const { return http(server_.port(), "DELETE", path).code; }
  Object get(const std::string& path) const {
    return Object::parse(http(server_.port(), "GET", path).body);
  }
  void create_quota(const std::string& hard) const {
    EXPECT_EQ(post("/api/v1/namespaces/default/resourcequotas",
                   fmt::format(R"({{"metadata":{{"name":"quota"}},"spec":{{"hard":{}}}}})", hard)),
              201);
  }
  std::string used(const std::string& what) const {
    const Object quota = get("/api/v1/namespaces/default/resourcequotas/quota");
    return std::string(quota["status"]["used"][what].as_string());
  }

 private:
  static ServerOptions options_on(std::shared_ptr<SilentBackend> storage) {
    ServerOptions options;
    options.storage = std::move(storage);
    return options;
  }

  const std::shared_ptr<SilentBackend> storage_;
  Server server_;
};

class UnansweredServiceWrites : public testing::Test {
 protected:
  int create(const std::string& body) const { return server_.post(kServicesPath, body); }
  static std::string path_of(const std::string& name) {
    return std::string(kServicesPath) + "/" + name;
  }
  /// Whether no other service can have the port.
  bool is_taken(int port) const {
    const int code = create(service_json(fmt::format("probe-{}", port), with_node_port(port)));
    EXPECT_TRUE(code == 201 || code == 422) << code;
    return code == 422;
  }

  SilentServer server_{"services/specs"};
};

TEST_F(UnansweredServiceWrites, ACreatedServiceKeepsItsAddress) {
  server_.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(create(service_at("a", "10.0.0.9")), 201);
  EXPECT_EQ(create(service_at("b", "10.0.0.9")), 422);
  EXPECT_EQ(server_.get(path_of("a")).name(), "a");
}

TEST_F(UnansweredServiceWrites, AServiceThatWasNotCreatedReleasesItsAddress) {
  server_.storage().lose_next(Loss::kRequest);
  EXPECT_EQ(create(service_at("a", "10.0.0.9")), 500);
  EXPECT_EQ(create(service_at("b", "10.0.0.9")), 201);
}

TEST_F(UnansweredServiceWrites, AnUnreadableServiceKeepsItsAddress) {
  server_.storage().lose_next(Loss::kAnswer);
  server_.storage().goes_away();
  EXPECT_EQ(create(service_at("a", "10.0.0.9")), 500);
  server_.storage().comes_back();
  EXPECT_EQ(create(service_at("b", "10.0.0.9")), 422);
  EXPECT_EQ(server_.get(path_of("a")).name(), "a");
}

TEST_F(UnansweredServiceWrites, AnUpdatedServiceKeepsItsNewAllocations) {
  EXPECT_EQ(create(service_at("a", "10.0.0.9")), 201);
  server_.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(server_.patch(path_of("a"), with_node_port(30500)), 500);
  EXPECT_TRUE(is_taken(30500));
  // Unused allocations are released.
  server_.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(server_.patch(path_of("a"), with_node_port(30501)), 500);
  EXPECT_TRUE(is_taken(30501));
  EXPECT_FALSE(is_taken(30500));
}

TEST_F(UnansweredServiceWrites, AServiceThatWasNotUpdatedKeepsItsAllocations) {
  EXPECT_EQ(create(service_json("a", with_node_port(30500))), 201);
  server_.storage().lose_next(Loss::kRequest);
  EXPECT_EQ(server_.patch(path_of("a"), with_node_port(30501)), 500);
  EXPECT_TRUE(is_taken(30500));
  EXPECT_FALSE(is_taken(30501));
}

TEST_F(UnansweredServiceWrites, ADeletedServiceReleasesItsAllocations) {
  EXPECT_EQ(create(service_at("a", "10.0.0.9")), 201);
  server_.storage().lose_next(Loss::kRequest);
  EXPECT_EQ(server_.remove(path_of("a")), 500);
  EXPECT_EQ(create(service_at("b", "10.0.0.9")), 422);
  server_.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(server_.remove(path_of("a")), 200);
  EXPECT_EQ(create(service_at("b", "10.0.0.9")), 201);
}

TEST_F(UnansweredServiceWrites, FailedUpdatesAreNotCharged) {
  EXPECT_EQ(create(service_at("a", "10.0.0.9")), 201);
  EXPECT_EQ(create(service_at("b", "10.0.0.10")), 201);
  server_.create_quota(R"({"services.nodeports":"1"})");
  server_.storage().lose_next(Loss::kRequest);
  EXPECT_EQ(server_.patch(path_of("a"), with_node_port(30500)), 500);
  EXPECT_EQ(server_.used("services.nodeports"), "0");
  server_.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(server_.patch(path_of("a"), with_node_port(30500)), 500);
  EXPECT_EQ(server_.patch(path_of("b"), with_node_port(30501)), 403);
  EXPECT_EQ(server_.used("services.nodeports"), "1");
}

TEST(UnansweredWrites, CreatedObjectsAreCharged) {
  SilentServer server("configmaps");
  server.create_quota(R"({"configmaps":"1"})");
  server.storage().lose_next(Loss::kRequest);
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("a")), 500);
  EXPECT_EQ(server.used("configmaps"), "0");
  server.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("a")), 201);
  EXPECT_EQ(server.used("configmaps"), "1");
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("b")), 403);
}

TEST(UnansweredWrites, UnreadableObjectsAreCountedAgain) {
  SilentServer server("configmaps");
  server.create_quota(R"({"configmaps":"2"})");
  server.storage().goes_away();
  server.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("a")), 500);
  EXPECT_EQ(server.used("configmaps"), "1");
  server.storage().lose_next(Loss::kRequest);
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("b")), 500);
  EXPECT_TRUE(eventually([&] { return server.used("configmaps") == "1"; }));
  server.storage().comes_back();
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("b")), 201);
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("c")), 403);
}

TEST(UnansweredWrites, AQuotaThatMayHaveBeenChargedIsCountedAgain) {
  SilentServer server("resourcequotas");
  server.create_quota(R"({"configmaps":"1"})");
  server.storage().lose_next(Loss::kAnswer);
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("a")), 500);
  EXPECT_TRUE(eventually([&] { return server.used("configmaps") == "0"; }));
  EXPECT_EQ(server.post(kConfigMapsPath, config_map_text("a")), 201);
}

}  // namespace
}  // namespace lookout::apiserver
