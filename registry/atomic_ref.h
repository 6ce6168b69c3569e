// A place that holds an object and may be read by many while it is given another.
#pragma once

#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>

#include "lookout/api/error.h"
#include "lookout/registry/counted.h"

namespace lookout::registry::detail {

/// The current T, which is Counted. load() takes no lock, allocates nothing and never waits,
/// whatever the other threads do.
///
/// One word holds the address and how many readers have just taken it from here without having
/// counted themselves in the object yet ("borrowed"). A reader borrows by adding one to the word,
/// counts itself in the object, and gives the loan back, to the word if the object is still there
/// and otherwise to the object, to which the writer that took it out has moved the loans. The place
/// itself holds so many references that readers cannot bring the count to zero before.
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
    // A writer has been here in between. (If it has put the same object back, loans are alike:
    // another reader's is in the word, ours in the object, or the other way round.)
    static_cast<void>(object->drop_references(1));  // never the last: `ref` is one
    return ref;
  }

  void store(Ref next) { release(word_.exchange(pack(next), std::memory_order_acq_rel)); }

 private:
  static constexpr int kBits = 16;  // for loans: far more than there are threads at it at a time
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
