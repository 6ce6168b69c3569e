// The objects of the server's state that could not be read.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/reflector.h"

namespace lookout::cache {

/// Items of a list that are there and cannot be taken: what cannot be decoded, has no name, or is
/// of a kind that nobody expects. They must not look like what is not there.
class Unreadable {
 public:
  /// `key`: "namespace/name", empty if that cannot be read either.
  void add(std::string key);
  void clear();

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  /// One of them, or empty.
  std::string example() const { return keys_.empty() ? std::string() : *keys_.begin(); }

  /// Adds what `store` has of them to the objects of the list, which then is all there is. If one
  /// of them has no name it may be anything: nothing that the store has is given up.
  void keep_known(std::vector<api::Object>& objects, const ReflectorStore& store) const;

 private:
  std::unordered_set<std::string> keys_;
  std::size_t count_ = 0;
  bool nameless_ = false;
};

}  // namespace lookout::cache
