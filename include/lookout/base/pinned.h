// Pinned: the base of classes that cannot be copied or moved.
#pragma once

namespace lookout::base {

/// The base of classes that can be neither copied nor moved, because other objects refer to them or
/// because their cleanup must run exactly once.
class Pinned {
 public:
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 protected:
  Pinned() = default;
  ~Pinned() = default;
};

}  // namespace lookout::base
