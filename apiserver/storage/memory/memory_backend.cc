#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/storage/memory/memory_resource.h"
#include "apiserver/storage/memory/table.h"
#include "lookout/apiserver/storage/memory.h"

namespace lookout::apiserver::storage {
namespace {

// kube-apiserver's prefix in etcd.
constexpr std::string_view kRoot = "/registry/";

HistoryLimits limits_of(const MemoryOptions& options) {
  return {options.history, options.history_bytes, options.history_age};
}

}  // namespace

class MemoryBackend::Impl {
 public:
  explicit Impl(MemoryOptions options) : options_(options) {}

  Interface& resource(std::string_view place, std::chrono::seconds ttl) {
    const std::lock_guard lock(mutex_);
    auto at = resources_.find(place);
    if (at == resources_.end()) {
      auto table =
          std::make_shared<memory::Table>(std::string(kRoot).append(place), revision_,
                                          limits_of(options_), ttl, options_.first_revision - 1);
      at = resources_
               .emplace(place, std::make_unique<memory::MemoryResource>(std::move(table), options_))
               .first;
    }
    return *at->second;
  }

  Revision current_revision() const { return revision_->load(std::memory_order_acquire); }

  template <class Visit>
  void for_each_table(Visit visit) {
    std::vector<memory::Table*> tables;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [place, resource] : resources_) tables.push_back(&resource->table());
    }
    for (memory::Table* table : tables) visit(*table);
  }

 private:
  const MemoryOptions options_;
  const std::shared_ptr<std::atomic<Revision>> revision_ =
      std::make_shared<std::atomic<Revision>>(options_.first_revision);
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<memory::MemoryResource>, std::less<>> resources_;
};

Revision revision_of_time(std::chrono::system_clock::time_point now) {
  const auto passed = std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch()).count();
  return passed <= 0 ? 1 : static_cast<Revision>(passed);
}

MemoryBackend::MemoryBackend(MemoryOptions options) : impl_(std::make_unique<Impl>(options)) {}
MemoryBackend::~MemoryBackend() = default;

Interface& MemoryBackend::resource(std::string_view place, std::chrono::seconds ttl,
                                   std::string_view /*group_resource*/) {
  return impl_->resource(place, ttl);
}

Awaitable<Revision> MemoryBackend::current_revision() { co_return impl_->current_revision(); }

void MemoryBackend::close() {
  impl_->for_each_table([](memory::Table& table) { table.close(); });
}

void MemoryBackend::maintain() {
  expire();
  const auto now = std::chrono::steady_clock::now();
  impl_->for_each_table([&](memory::Table& table) { table.trim(now); });
}

void MemoryBackend::expire(std::chrono::steady_clock::time_point now) {
  impl_->for_each_table([&](memory::Table& table) { table.expire(now); });
}

}  // namespace lookout::apiserver::storage
