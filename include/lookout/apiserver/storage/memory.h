// A storage in memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage {

struct MemoryOptions {
  /// How many changes of a resource are remembered, for watchers that are behind and for lists of
  /// the past. Each costs the memory of the object's state before it.
  std::size_t history = 10000;
  /// How much memory that may take for each resource, and how old it may become. The latest change
  /// is always remembered.
  std::size_t history_bytes = 64u << 20;
  std::chrono::milliseconds history_age = std::chrono::minutes(10);
  /// How long a request or a watch waits for a revision that lies in the future, before it fails:
  /// the revision is too large (504).
  std::chrono::milliseconds future_wait{3000};
  /// Revisions begin here; at least 1. Requests for an older one fail: it has expired.
  Revision first_revision = 1;
};

/// A first revision that grows with time: the microseconds since 1970. A server that begins there
/// lies above everything that an earlier one can have given out, as none makes a million changes a
/// second for as long as it runs: all revisions that clients remember have expired. (If the clock
/// has been put back, they lie in the future, and requests for them fail.) Numbers stay below 2^53
/// for two hundred years, for clients that take them for floating-point numbers.
Revision revision_of_time(std::chrono::system_clock::time_point now);

/// Keeps everything in memory, with one counter of revisions for all resources. The objects that
/// the storage hands out are immutable and shared, never copied.
///
/// It has no threads: a change is passed on to watchers by the thread that made it, which only
/// rings them; reading what changed, selecting and encoding happens where the watchers run.
class MemoryBackend final : public Backend {
 public:
  explicit MemoryBackend(MemoryOptions options = {});
  ~MemoryBackend() override;

  Interface& resource(std::string_view place, std::chrono::seconds ttl = {},
                      std::string_view group_resource = {}) override;
  Awaitable<Revision> current_revision() override;
  void close() override;

  /// Removes what has outlived its time, and forgets the past that is too old.
  void maintain() override;
  void expire(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver::storage
