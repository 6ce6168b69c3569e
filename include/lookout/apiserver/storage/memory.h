// A storage in memory.
#pragma once

#include <cstddef>
#include <memory>

#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage {

struct MemoryOptions {
  /// How many changes of a resource are remembered, for watchers that are behind and for lists of
  /// the past. Each costs the memory of the object's state before it.
  std::size_t history = 10000;
  /// How long a request waits for a revision that lies in the future.
  std::chrono::milliseconds future_wait{3000};
  /// Where revisions begin; at least 1. Whoever asks for an older one is told that it has expired.
  Revision first_revision = 1;
};

/// A first revision that grows with time, ten a second, so that what clients remember of an earlier
/// run has expired and does not lie in the future. (It stays below a thousand million for years.)
Revision revision_of_time(std::chrono::system_clock::time_point now);

/// Keeps everything in memory, with one counter of revisions for all resources. What the storage
/// hands out is immutable and shared, never copied.
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

  /// Removes what has outlived its time.
  void maintain() override { expire(); }
  void expire(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver::storage
