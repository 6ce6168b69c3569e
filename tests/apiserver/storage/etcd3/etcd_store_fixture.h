// A store on an etcd, with access to its parts.
#pragma once

#include <memory>
#include <string>

#include "apiserver/storage/etcd3/client.h"
#include "apiserver/storage/etcd3/codec.h"
#include "apiserver/storage/etcd3/context.h"
#include "apiserver/storage/etcd3/store.h"
#include "apiserver/storage/revision.h"
#include "tests/apiserver/storage/storage_client.h"

namespace lookout::apiserver::storage::etcd3 {

/// A client with blocking calls.
class EtcdClient {
 public:
  explicit EtcdClient(EtcdOptions options) : client_(std::make_shared<Client>(options, loop_)) {}
  ~EtcdClient() {
    client_->shutdown();
    client_->wait_for_tasks();
  }

  const std::shared_ptr<Client>& get() const { return client_; }
  Client* operator->() const { return client_.get(); }
  template <class T>
  T run(Awaitable<T> task) {
    return thread_.run(std::move(task));
  }
  RangeResponse range(std::string key, bool recursive = false) {
    RangeRequest request;
    request.range_end = recursive ? prefix_end(key) : std::string();
    request.key = std::move(key);
    return run(client_->range(std::move(request)));
  }
  Revision put(std::string key, std::string value) {
    return run(client_->put(std::move(key), std::move(value)));
  }

 private:
  EventLoop loop_{2};
  std::shared_ptr<Client> client_;
  TestThread thread_;
};

inline EtcdOptions options_for(EtcdOptions options) {
  options.future_wait = std::chrono::milliseconds(1000);
  return options;
}
inline EtcdOptions options_for(std::vector<std::string> endpoints) {
  EtcdOptions options;
  options.endpoints = std::move(endpoints);
  return options_for(std::move(options));
}
inline EtcdOptions options_of_user(std::vector<std::string> endpoints, std::string username,
                                   std::string password) {
  EtcdOptions options = options_for(std::move(endpoints));
  options.username = std::move(username);
  options.password = std::move(password);
  return options;
}

/// The context of a store for the resource under `prefix`.
inline std::shared_ptr<Context> context_for(const EtcdClient& client, std::string prefix,
                                            TransformerPtr transformer = identity_transformer()) {
  auto context = std::make_shared<Context>();
  context->client = client.get();
  context->codec = json_codec();
  context->transformer = std::move(transformer);
  context->prefix = std::move(prefix);
  return context;
}

/// A store of the resource, for objects that do not expire.
inline std::shared_ptr<Store> store_for(const EtcdClient& client, std::string prefix) {
  return std::make_shared<Store>(context_for(client, std::move(prefix)),
                                 std::make_shared<LeaseManager>(client.get()),
                                 std::chrono::seconds(0));
}

/// The store of "pods" under a prefix.
class EtcdStore {
 public:
  EtcdStore(EtcdOptions options, const std::string& prefix,
            TransformerPtr transformer = identity_transformer(), std::chrono::seconds ttl = {})
      : client_(std::move(options)) {
    store_ = std::make_unique<Store>(context_for(client_, prefix + "/pods", std::move(transformer)),
                                     std::make_shared<LeaseManager>(client_.get()), ttl);
    objects_ = std::make_unique<StorageClient>(*store_);
  }
  ~EtcdStore() { store_->close(); }

  EtcdClient& etcd() { return client_; }
  Store& store() { return *store_; }
  StorageClient* operator->() { return objects_.get(); }

 private:
  EtcdClient client_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<StorageClient> objects_;
};

inline api::Object pod(const std::string& name, const std::string& app = "a",
                       const std::string& note = "") {
  return api::Object::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":")" + name +
      R"(","uid":"uid-)" + name + R"(","labels":{"app":")" + app + R"("},"annotations":{"note":")" +
      note + R"("}}})");
}

inline Predicate app_is(const std::string& app) {
  Predicate predicate;
  predicate.labels = api::labels::parse("app=" + app);
  return predicate;
}

}  // namespace lookout::apiserver::storage::etcd3
