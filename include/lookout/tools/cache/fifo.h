// Fifo: a queue of objects in order of arrival.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/key.h"

namespace lookout::cache {

/// client-go's FIFO: keeps the latest version of each waiting object, at the position of its first
/// version. For programs that process each object once; informers use DeltaFifo, which keeps every
/// change. Any number of threads may add and remove objects.
class Fifo {
 public:
  explicit Fifo(KeyFunc key_func = meta_namespace_key) : key_func_(std::move(key_func)) {}

  /// Each function throws what the key function throws, and does nothing after close().
  void add(const api::Object& object);
  void update(const api::Object& object) { add(object); }
  /// Removes the object without processing it.
  void remove(const api::Object& object);
  /// Replaces the content of the queue.
  void replace(const std::vector<api::Object>& objects);

  struct Item {
    api::Object object;
    bool initial = false;  ///< part of the first replace()
  };
  /// Waits for an object and removes it. Empty if a stop was requested or the queue is closed.
  std::optional<Item> pop(std::stop_token stop = {});

  /// Ends all waits.
  void close();
  bool closed() const;
  /// True if everything from the first replace() has been removed, or if something was added before
  /// it.
  bool has_synced() const;

  api::Object get_by_key(std::string_view key) const;
  std::vector<api::Object> list() const;
  std::vector<std::string> list_keys() const;
  std::size_t size() const;

 private:
  const KeyFunc key_func_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<std::string> queue_;  // may contain keys of removed objects
  std::unordered_map<std::string, api::Object> items_;
  bool populated_ = false;
  std::size_t initial_count_ = 0;
  bool closed_ = false;
};

}  // namespace lookout::cache
