#include "testing/sim/noted_storage.h"

#include <string>
#include <utility>

namespace lookout::sim {

using apiserver::storage::Interface;
using apiserver::storage::ListOptions;
using apiserver::storage::ListResult;
using apiserver::storage::Preconditions;
using apiserver::storage::Revision;
using apiserver::storage::Watch;
using apiserver::storage::WatchOptions;

class NotedStorage::Resource : public Interface {
 public:
  Resource(Interface& memory, const std::function<void()>& on_write)
      : memory_(memory), on_write_(on_write) {}

  const std::string& prefix() const override { return memory_.prefix(); }

  Awaitable<api::Object> create(std::string key, api::Object object) override {
    api::Object out = co_await memory_.create(std::move(key), std::move(object));
    on_write_();
    co_return out;
  }

  Awaitable<api::Object> get(std::string key, Revision not_older_than) override {
    return memory_.get(std::move(key), not_older_than);
  }

  Awaitable<ListResult> list(std::string key, bool recursive, ListOptions options) override {
    return memory_.list(std::move(key), recursive, std::move(options));
  }

  Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                           Preconditions preconditions, Update update) override {
    api::Object out = co_await memory_.guaranteed_update(
        std::move(key), create_if_absent, std::move(preconditions), std::move(update));
    on_write_();
    co_return out;
  }

  Awaitable<api::Object> remove(std::string key, Preconditions preconditions,
                                Validate validate) override {
    api::Object out =
        co_await memory_.remove(std::move(key), std::move(preconditions), std::move(validate));
    on_write_();
    co_return out;
  }

  Awaitable<std::unique_ptr<Watch>> watch(std::string key, bool recursive,
                                          WatchOptions options) override {
    return memory_.watch(std::move(key), recursive, std::move(options));
  }

  Awaitable<Revision> current_revision() override { return memory_.current_revision(); }
  Awaitable<std::size_t> count() override { return memory_.count(); }
  std::optional<std::size_t> known_count() const override { return memory_.known_count(); }

 private:
  Interface& memory_;
  const std::function<void()>& on_write_;
};

NotedStorage::NotedStorage(Revision first_revision, std::function<void()> on_write)
    : memory_({.first_revision = first_revision}), on_write_(std::move(on_write)) {}

NotedStorage::~NotedStorage() = default;

/// Each resource of the memory lives as long as it.
Interface& NotedStorage::resource(std::string_view place, std::chrono::seconds ttl,
                                  std::string_view group_resource) {
  Interface& memory = memory_.resource(place, ttl, group_resource);
  const std::lock_guard lock(mutex_);
  auto& out = resources_[&memory];
  if (out == nullptr) out = std::make_unique<Resource>(memory, on_write_);
  return *out;
}

Awaitable<Revision> NotedStorage::current_revision() { return memory_.current_revision(); }

}  // namespace lookout::sim
