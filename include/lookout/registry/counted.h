// Counted: the base of reference-counted objects.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

namespace lookout::registry::detail {

/// The base of objects that are held by boost::intrusive_ptr.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void add_references(std::int64_t count) const {
    references_.fetch_add(count, std::memory_order_relaxed);
  }
  /// Returns true if no references are left.
  bool drop_references(std::int64_t count) const {
    return references_.fetch_sub(count, std::memory_order_acq_rel) == count;
  }

 protected:
  ~Counted() = default;

 private:
  mutable std::atomic<std::int64_t> references_{0};
};

template <std::derived_from<Counted> T>
void intrusive_ptr_add_ref(const T* object) {
  object->add_references(1);
}
template <std::derived_from<Counted> T>
void intrusive_ptr_release(const T* object) {
  if (object->drop_references(1)) delete object;
}

}  // namespace lookout::registry::detail
