// A storage whose watches can be cut off, and whose lists can be held up.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/memory.h"
#include "lookout/rest/client.h"

namespace lookout::apiserver {

/// Passes everything on to a storage in memory, but for what a test does to one of its resources.
class WrappedBackend final : public storage::Backend {
 public:
  explicit WrappedBackend(std::string place) : place_(std::move(place)) {}

  /// Ends all watches of the resource; until reconnect() there are no others.
  void cut_watches() {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    for (storage::Watch* watch : watches_) watch->cancel();
  }
  void reconnect() {
    const std::lock_guard lock(mutex_);
    cut_ = false;
  }
  /// Called with the key before a list of the resource is made. Before the first request.
  std::function<Awaitable<void>(std::string key)> on_list;
  /// The same before an object of the resource is read, or deleted.
  std::function<Awaitable<void>(std::string key)> on_get;
  std::function<Awaitable<void>(std::string key)> on_remove;

  /// The storage behind it: without hooks and cuts.
  storage::MemoryBackend& memory() { return memory_; }

  storage::Interface& resource(std::string_view place, std::chrono::seconds ttl,
                               std::string_view group_resource) override {
    storage::Interface& inner = memory_.resource(place, ttl, group_resource);
    if (place != place_) return inner;
    const std::lock_guard lock(mutex_);
    if (wrapped_ == nullptr) wrapped_ = std::make_unique<Wrapped>(*this, inner);
    return *wrapped_;
  }
  Awaitable<storage::Revision> current_revision() override { return memory_.current_revision(); }
  void close() override { memory_.close(); }
  void maintain() override { memory_.maintain(); }

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

  class Wrapped final : public storage::Interface {
   public:
    Wrapped(WrappedBackend& all, storage::Interface& inner) : all_(all), inner_(inner) {}

    const std::string& prefix() const override { return inner_.prefix(); }
    Awaitable<api::Object> create(std::string key, api::Object object) override {
      return inner_.create(std::move(key), std::move(object));
    }
    Awaitable<api::Object> get(std::string key, storage::Revision revision) override {
      co_await call(all_.on_get, key);
      co_return co_await inner_.get(std::move(key), revision);
    }
    Awaitable<storage::ListResult> list(std::string key, bool recursive,
                                        storage::ListOptions options) override {
      co_await call(all_.on_list, key);
      co_return co_await inner_.list(std::move(key), recursive, std::move(options));
    }
    Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                             storage::Preconditions preconditions,
                                             Update update) override {
      return inner_.guaranteed_update(std::move(key), create_if_absent, std::move(preconditions),
                                      std::move(update));
    }
    Awaitable<api::Object> remove(std::string key, storage::Preconditions preconditions,
                                  Validate validate) override {
      co_await call(all_.on_remove, key);
      co_return co_await inner_.remove(std::move(key), std::move(preconditions),
                                       std::move(validate));
    }
    Awaitable<std::unique_ptr<storage::Watch>> watch(std::string key, bool recursive,
                                                     storage::WatchOptions options) override {
      {
        const std::lock_guard lock(all_.mutex_);
        if (all_.cut_)
          throw storage::StorageError(storage::StorageError::Code::kUnreachable, prefix());
      }
      auto inner = co_await inner_.watch(std::move(key), recursive, std::move(options));
      co_return std::make_unique<CutWatch>(all_, std::move(inner));
    }
    Awaitable<storage::Revision> current_revision() override { return inner_.current_revision(); }
    Awaitable<std::size_t> count() override { return inner_.count(); }

   private:
    static Awaitable<void> call(const std::function<Awaitable<void>(std::string)>& hook,
                                const std::string& key) {
      if (!hook) co_return;
      std::string same = key;
      co_await hook(std::move(same));
    }

    WrappedBackend& all_;
    storage::Interface& inner_;
  };

  const std::string place_;
  storage::MemoryBackend memory_;
  std::mutex mutex_;
  bool cut_ = false;  // guarded by mutex_, as are those below
  std::set<storage::Watch*> watches_;
  std::unique_ptr<Wrapped> wrapped_;
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
