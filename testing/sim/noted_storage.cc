#include "testing/sim/noted_storage.h"

#include <string>
#include <utility>

#include "lookout/apiserver/detail/passing_interface.h"

namespace lookout::sim {

namespace storage = apiserver::storage;

class NotedStorage::Resource : public storage::PassingInterface {
 public:
  Resource(storage::Interface& memory, const std::function<void()>& on_write)
      : PassingInterface(memory), on_write_(on_write) {}

  Awaitable<api::Object> create(std::string key, api::Object object) override {
    return noted(PassingInterface::create(std::move(key), std::move(object)));
  }
  Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                           storage::Preconditions preconditions,
                                           Update update) override {
    return noted(PassingInterface::guaranteed_update(std::move(key), create_if_absent,
                                                     std::move(preconditions), std::move(update)));
  }
  Awaitable<api::Object> remove(std::string key, storage::Preconditions preconditions,
                                Validate validate) override {
    return noted(
        PassingInterface::remove(std::move(key), std::move(preconditions), std::move(validate)));
  }

 private:
  Awaitable<api::Object> noted(Awaitable<api::Object> write) {
    api::Object out = co_await std::move(write);
    on_write_();
    co_return out;
  }

  const std::function<void()>& on_write_;
};

NotedStorage::NotedStorage(storage::Revision first_revision, std::function<void()> on_write)
    : memory_({.first_revision = first_revision}), on_write_(std::move(on_write)) {}

NotedStorage::~NotedStorage() = default;

/// The resources of the memory backend live as long as the backend.
storage::Interface& NotedStorage::resource(std::string_view place, std::chrono::seconds ttl,
                                           std::string_view group_resource) {
  storage::Interface& memory = memory_.resource(place, ttl, group_resource);
  const std::lock_guard lock(mutex_);
  auto& out = resources_[&memory];
  if (out == nullptr) out = std::make_unique<Resource>(memory, on_write_);
  return *out;
}

Awaitable<storage::Revision> NotedStorage::current_revision() { return memory_.current_revision(); }

}  // namespace lookout::sim
