// A memory storage with one wrapped resource.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/apiserver/detail/passing_interface.h"
#include "lookout/apiserver/storage/memory.h"

namespace lookout::apiserver {

/// Other resources are passed on to the memory storage.
class PassingBackend : public storage::Backend {
 public:
  /// The underlying storage.
  storage::MemoryBackend& memory() { return memory_; }

  storage::Interface& resource(std::string_view place, std::chrono::seconds ttl,
                               std::string_view group_resource) override {
    storage::Interface& inner = memory_.resource(place, ttl, group_resource);
    if (place != place_) return inner;
    const std::lock_guard lock(mutex_);
    if (wrapped_ == nullptr) wrapped_ = wrap(inner);
    return *wrapped_;
  }
  Awaitable<storage::Revision> current_revision() override { return memory_.current_revision(); }
  void close() override { memory_.close(); }
  void maintain() override { memory_.maintain(); }

 protected:
  /// `place` names the wrapped resource.
  explicit PassingBackend(std::string place) : place_(std::move(place)) {}

  virtual std::unique_ptr<storage::Interface> wrap(storage::Interface& inner) = 0;

 private:
  const std::string place_;
  storage::MemoryBackend memory_;
  std::mutex mutex_;
  std::unique_ptr<storage::Interface> wrapped_;  // guarded by mutex_
};

}  // namespace lookout::apiserver
