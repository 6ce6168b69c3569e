// MemoryBackend: a storage in memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage {

struct MemoryOptions {
  /// The number of changes of a resource that are kept for slow watchers and for lists of old
  /// revisions. Each keeps the object's previous state in memory.
  std::size_t history = 10000;
  /// The limits of that history: bytes per resource, and age. The latest change is always kept.
  std::size_t history_bytes = 64u << 20;
  std::chrono::milliseconds history_age = std::chrono::minutes(10);
  /// How long a request or a watch waits for a future revision before it fails with 504 ("Too large
  /// resource version").
  std::chrono::milliseconds future_wait{3000};
  /// The first revision; at least 1. Requests for an older one fail as expired.
  Revision first_revision = 1;
};

/// A first revision that grows with time: the microseconds since 1970. It exceeds all revisions of
/// an earlier server, which makes fewer than a million changes per second, so the revisions that
/// clients remember have expired. (If the clock was set back, they lie in the future, and requests
/// for them fail.) The numbers stay below 2^53 for two hundred years, for clients that store them
/// as floating-point numbers.
Revision revision_of_time(std::chrono::system_clock::time_point now);

/// Keeps everything in memory, with one revision counter for all resources. The returned objects
/// are immutable and shared, never copied.
///
/// It has no threads: the thread that makes a change only wakes the watchers; reading, selecting
/// and encoding happen on the watchers' executors.
class MemoryBackend final : public Backend {
 public:
  explicit MemoryBackend(MemoryOptions options = {});
  ~MemoryBackend() override;

  Interface& resource(std::string_view place, std::chrono::seconds ttl = {},
                      std::string_view group_resource = {}) override;
  Awaitable<Revision> current_revision() override;
  void close() override;

  /// Removes expired objects, and discards history that is too old.
  void maintain() override;
  void expire(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver::storage
