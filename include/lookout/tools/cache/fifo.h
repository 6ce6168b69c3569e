// Objects to be dealt with, in the order in which they came.
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

/// client-go's FIFO: of each object that waits, the latest version, in the place of the first. For
/// programs that want to deal with each object once; informers use DeltaFifo, which keeps what
/// happened. Any number of threads may put in and take out.
class Fifo {
 public:
  explicit Fifo(KeyFunc key_func = meta_namespace_key) : key_func_(std::move(key_func)) {}

  /// Each throws what the key function throws, and has no effect once the queue is closed.
  void add(const api::Object& object);
  void update(const api::Object& object) { add(object); }
  /// Takes it out without dealing with it.
  void remove(const api::Object& object);
  /// These wait, and no others.
  void replace(const std::vector<api::Object>& objects);

  struct Item {
    api::Object object;
    bool initial = false;  ///< it belongs to the first replace()
  };
  /// Waits for an object and takes it out. Nothing if a stop was requested, or if it is closed.
  std::optional<Item> pop(std::stop_token stop = {});

  /// Ends all waiting.
  void close();
  bool closed() const;
  /// Whether everything that the first replace() brought has been taken out; true as well if
  /// something else came before.
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
  std::deque<std::string> queue_;  // may name what has been removed
  std::unordered_map<std::string, api::Object> items_;
  bool populated_ = false;
  std::size_t initial_count_ = 0;
  bool closed_ = false;
};

}  // namespace lookout::cache
