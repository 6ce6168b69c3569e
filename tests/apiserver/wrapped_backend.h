// A storage whose watches can be disconnected, and whose lists can be blocked.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"
#include "tests/apiserver/passing_storage.h"

namespace lookout::apiserver {

/// Forwards to a memory storage, except for a test's interference with one resource.
class WrappedBackend final : public PassingBackend {
 public:
  explicit WrappedBackend(std::string place) : PassingBackend(std::move(place)) {}

  /// Ends all watches of the resource, and rejects new ones until reconnect().
  void cut_watches() {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    for (storage::Watch* watch : watches_) watch->cancel();
  }
  void reconnect() {
    const std::lock_guard lock(mutex_);
    cut_ = false;
  }
  /// Called with the key before each list of the resource. Set it before the first request.
  std::function<Awaitable<void>(std::string key)> on_list;
  /// The same before an object of the resource is read, or deleted.
  std::function<Awaitable<void>(std::string key)> on_get;
  std::function<Awaitable<void>(std::string key)> on_remove;

 private:
  class CutWatch final : public storage::Watch {
   public:
    CutWatch(WrappedBackend& all, std::unique_ptr<storage::Watch> inner)
        : all_(all), inner_(std::move(inner)) {
      const std::lock_guard lock(all_.mutex_);
      all_.watches_.insert(this);
    }
    ~CutWatch() override {
      const std::lock_guard lock(all_.mutex_);
      all_.watches_.erase(this);
    }
    Awaitable<bool> next(std::vector<storage::Event>& events, TimePoint until) override {
      return inner_->next(events, until);
    }
    void request_bookmark() override { inner_->request_bookmark(); }
    void cancel() override { inner_->cancel(); }

   private:
    WrappedBackend& all_;
    const std::unique_ptr<storage::Watch> inner_;
  };

  class Wrapped final : public storage::PassingInterface {
   public:
    Wrapped(WrappedBackend& all, storage::Interface& inner) : PassingInterface(inner), all_(all) {}

    Awaitable<api::Object> get(std::string key, storage::Revision revision) override {
      co_await call(all_.on_get, key);
      co_return co_await PassingInterface::get(std::move(key), revision);
    }
    Awaitable<storage::ListResult> list(std::string key, bool recursive,
                                        storage::ListOptions options) override {
      co_await call(all_.on_list, key);
      co_return co_await PassingInterface::list(std::move(key), recursive, std::move(options));
    }
    Awaitable<api::Object> remove(std::string key, storage::Preconditions preconditions,
                                  Validate validate) override {
      co_await call(all_.on_remove, key);
      co_return co_await PassingInterface::remove(std::move(key), std::move(preconditions),
                                                  std::move(validate));
    }
    Awaitable<std::unique_ptr<storage::Watch>> watch(std::string key, bool recursive,
                                                     storage::WatchOptions options) override {
      {
        const std::lock_guard lock(all_.mutex_);
        if (all_.cut_)
          throw storage::StorageError(storage::StorageError::Code::kUnreachable, prefix());
      }
      auto inner = co_await PassingInterface::watch(std::move(key), recursive, std::move(options));
      co_return std::make_unique<CutWatch>(all_, std::move(inner));
    }

   private:
    static Awaitable<void> call(const std::function<Awaitable<void>(std::string)>& hook,
                                const std::string& key) {
      if (!hook) co_return;
      std::string same = key;
      co_await hook(std::move(same));
    }

    WrappedBackend& all_;
  };

  std::unique_ptr<storage::Interface> wrap(storage::Interface& inner) override {
    return std::make_unique<Wrapped>(*this, inner);
  }

  std::mutex mutex_;
  bool cut_ = false;  // guarded by mutex_, as are those below
  std::set<storage::Watch*> watches_;
};

/// A server on such a storage. Its hooks must have been set.
struct RunningServer {
  explicit RunningServer(const std::shared_ptr<WrappedBackend>& backend)
      : server(on(backend)), client(server.client_config()) {}

  Server server;
  rest::Client client;

 private:
  static ServerOptions on(const std::shared_ptr<WrappedBackend>& backend) {
    ServerOptions options;
    options.storage = backend;
    return options;
  }
};

}  // namespace lookout::apiserver
