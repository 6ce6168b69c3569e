// Unreadable: the items of a list that could not be read.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/reflector.h"

namespace lookout::cache {

/// Items of a list that exist but cannot be stored: undecodable, without a name, or of an unexpected
/// kind. They must not be treated as deleted.
class Unreadable {
 public:
  /// `key`: "namespace/name"; empty if it is unreadable, too.
  void add(std::string key);
  void clear();

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  /// The key of one of them, or empty.
  std::string example() const { return keys_.empty() ? std::string() : *keys_.begin(); }

  /// The keys of all; with an empty one if a key is unreadable.
  std::unordered_set<std::string> keys() const;

  /// Adds their stored versions from `store` to the objects of the list. If the key of one of them is
  /// unknown, adds all stored objects that the list lacks.
  void keep_known(std::vector<api::Object>& objects, const ReflectorStore& store) const;

 private:
  std::unordered_set<std::string> keys_;
  std::size_t count_ = 0;
  bool nameless_ = false;
};

}  // namespace lookout::cache
