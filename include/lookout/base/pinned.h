// Objects that stay where they are made.
#pragma once

namespace lookout::base {

/// The base of classes that can be neither copied nor moved, because something else refers to the
/// object or its end must happen once.
class Pinned {
 public:
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 protected:
  Pinned() = default;
  ~Pinned() = default;
};

}  // namespace lookout::base
