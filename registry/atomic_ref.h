// AtomicRef: an atomic smart pointer.
#pragma once

#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>

#include "lookout/api/error.h"
#include "lookout/registry/counted.h"

namespace lookout::registry::detail {

/// The current T, which is Counted. load() is wait-free and allocates nothing.
///
/// One word holds the address and the number of borrowed references: readers that have loaded the
/// address but have not yet incremented the object's count. A reader increments the word, then the
/// object's count, and returns the borrowed reference: to the word if the object is unchanged, else
/// to the object, to which the writer has moved the borrowed references. The AtomicRef itself holds
/// enough references that readers cannot reduce the count to zero before.
template <class T>
class AtomicRef {
 public:
  using Ref = boost::intrusive_ptr<const T>;

  explicit AtomicRef(Ref first) : word_(pack(first)) {}
  ~AtomicRef() { release(word_.load(std::memory_order_acquire)); }
  AtomicRef(const AtomicRef&) = delete;
  AtomicRef& operator=(const AtomicRef&) = delete;

  Ref load() const {
    std::uint64_t word = word_.fetch_add(1, std::memory_order_acquire) + 1;
    const T* const object = address(word);
    Ref ref(object);
    while (address(word) == object && borrowed(word) > 0) {
      if (word_.compare_exchange_weak(word, word - 1, std::memory_order_release,
                                      std::memory_order_relaxed)) {
        return ref;
      }
    }
    // A writer has replaced the object. (If it has stored the same object again, it does not matter
    // which borrowed reference is in the word and which in the object.)
    static_cast<void>(object->drop_references(1));  // never the last: `ref` is one
    return ref;
  }

  void store(Ref next) { release(word_.exchange(pack(next), std::memory_order_acq_rel)); }

 private:
  static constexpr int kBits = 16;  // for borrowed references: far more than concurrent threads
  static constexpr std::int64_t kOwn = 1 << 20;

  static std::uint64_t pack(const Ref& ref) {
    const auto bits = reinterpret_cast<std::uintptr_t>(ref.get());
    static_assert(sizeof bits == 8, "an address and a count share a word of 64 bits");
    if (bits == 0 || (bits >> (64 - kBits)) != 0) {
      throw InvalidArgument("an address that does not fit into 48 bits");
    }
    ref->add_references(kOwn);
    return static_cast<std::uint64_t>(bits) << kBits;
  }
  static const T* address(std::uint64_t word) {
    return reinterpret_cast<const T*>(static_cast<std::uintptr_t>(word >> kBits));
  }
  static std::int64_t borrowed(std::uint64_t word) {
    return static_cast<std::int64_t>(word & ((1u << kBits) - 1));
  }
  static void release(std::uint64_t word) {
    const T* const object = address(word);
    if (object->drop_references(kOwn - borrowed(word))) delete object;
  }

  mutable std::atomic<std::uint64_t> word_;
};

}  // namespace lookout::registry::detail
