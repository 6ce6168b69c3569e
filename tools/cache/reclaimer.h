// Reclaimer: frees the memory of old versions.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace lookout::cache::detail {

/// A piece of memory that belongs to the versions from `birth` up to, not including, `death`.
struct Retired {
  void* memory = nullptr;
  void (*dispose)(void*) = nullptr;
  std::uint64_t birth = 0;
  std::uint64_t death = 0;
};

/// Free nodes of one size, for reuse by the writer: nodes become free in dozens, and malloc caches only
/// a few pieces of a size.
class SpareNodes {
 public:
  SpareNodes() = default;
  ~SpareNodes() { keep(0); }
  SpareNodes(const SpareNodes&) = delete;
  SpareNodes& operator=(const SpareNodes&) = delete;

  /// Retired::dispose of such a node. Instead of calling it, one may pass the node to add().
  static void dispose(void* node) { std::free(node); }
  void add(void* node) { nodes_.size() < most_ ? nodes_.push_back(node) : std::free(node); }
  /// Null if there is none.
  void* take() {
    if (nodes_.empty()) return nullptr;
    void* const node = nodes_.back();
    nodes_.pop_back();
    return node;
  }
  /// Sets the maximum number of nodes to keep, at most a hundred; initially 0.
  void keep(std::size_t most) {
    constexpr std::size_t kEnough = 100;
    most_ = std::min(most, kEnough);
    for (; nodes_.size() > most_; nodes_.pop_back()) std::free(nodes_.back());
  }

 private:
  std::size_t most_ = 0;
  std::vector<void*> nodes_;
};

/// A list of pieces in portions: adding a piece, or all of another list, does not move existing
/// pieces.
class RetiredList {
 public:
  struct Portion {
    static constexpr std::size_t kPieces = 30;

    std::unique_ptr<Portion> next;
    std::uint64_t last_death = 0;
    std::size_t size = 0;
    Retired pieces[kPieces];
  };

  RetiredList() = default;
  RetiredList(RetiredList&& other) noexcept { *this = std::move(other); }
  RetiredList& operator=(RetiredList&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(portions_, other.portions_);
    return *this;
  }
  ~RetiredList() {
    // (In a loop: destroying a long chain recursively would overflow the stack.)
    while (take()) {
    }
  }

  std::size_t portions() const { return portions_; }
  void add(const Retired& piece);
  void add(std::unique_ptr<Portion> portion);
  void add(RetiredList&& other);
  /// The first portion, or null.
  std::unique_ptr<Portion> take();

 private:
  std::unique_ptr<Portion> first_;
  Portion* last_ = nullptr;
  std::size_t portions_ = 0;
};

/// Tracks which versions of a store are still being read, and frees memory that no reader can reach.
///
/// There are two kinds of readers. A *pin* (a snapshot) holds one version for any length of time. A
/// retired piece goes to the newest pinned version that can see it; when that pin is released, to the
/// next older one that can, or it is freed. So a snapshot that is held for an hour keeps only what it
/// shows, not objects that were created and removed in the meantime. A *guard* is for one lookup: it
/// records, in a slot that hardly any other thread uses, that nothing that is alive now may be freed.
/// It takes no lock and writes to no cache line that all readers share.
///
/// Neither blocks the writer. A snapshot of a long list may have kept a hundred thousand pieces; they
/// are processed under the mutex in small steps. A writer that finds the mutex taken continues with the
/// next version, and with each version it frees a little more than it retires.
///
/// One writer at a time publishes versions. All functions may be called from any thread unless stated
/// otherwise.
class Reclaimer {
 public:
  Reclaimer() = default;
  /// There must be no readers.
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  /// Protects every version that is current during its lifetime. Must be short-lived: nothing is freed
  /// in the meantime.
  class Guard {
   public:
    explicit Guard(const Reclaimer& reclaimer) : reclaimer_(reclaimer), place_(reclaimer.enter()) {}
    ~Guard() { reclaimer_.leave(place_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    const Reclaimer& reclaimer_;
    std::atomic<std::uint64_t>* const place_;
  };
  /// Called by a guard at its begin and its end. Readers without a slot form a crowd: they share one
  /// slot and are counted under the mutex.
  std::atomic<std::uint64_t>* enter() const;
  void leave(std::atomic<std::uint64_t>* place) const {
    if (place == &crowds_[0].place.version || place == &crowds_[1].place.version)
      return leave_crowd(*place);
    place->store(kIdle, std::memory_order_release);
  }

  /// Calls `current` to get the current version and pins it; returns the version.
  template <class Current>
  std::uint64_t pin(Current current) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t version = current();
    ++pins_[version].count;
    return version;
  }
  void unpin(std::uint64_t version);

  /// Called by the writer before it creates a version; publish() ends it.
  void begin_write() { at_work_.store(true, std::memory_order_relaxed); }
  /// Called by the writer after it has stored the version's root for readers. Freed nodes go to
  /// `spare`, unless it is null.
  void publish(std::uint64_t version, std::vector<Retired>& retired, SpareNodes* spare = nullptr);

  /// Called by the writer instead of publish(), for a version that changes memory in place: calls
  /// `change` and returns true, unless the mutex is taken or a pin sees that memory, which exists since
  /// the version `birth`. No pin starts in the meantime. `change` must end with a sequentially
  /// consistent store to a variable that guards load before they read that memory.
  template <class Change>
  bool publish_in_place(std::uint64_t birth, std::uint64_t version,
                        std::span<const Retired> retired, Change change) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    if (!pins_.empty() && pins_.rbegin()->first >= birth) return false;
    change();
    version_.store(version, std::memory_order_release);
    bury_and_free(retired, std::move(lock), nullptr);
    at_work_.store(false, std::memory_order_relaxed);
    return true;
  }

  /// Frees everything that no reader can reach.
  void reclaim();

 private:
  static constexpr std::size_t kSlots = 16;
  static constexpr std::uint64_t kIdle = 0;
  // Freeing has to check every slot, so the writer does it for many pieces at once: when there are
  // this many portions.
  static constexpr std::size_t kBatch = 4;
  // With this many portions, the writer waits for the mutex.
  static constexpr std::size_t kMostUnburied = 2048;
  // How many portions are processed without releasing the mutex.
  static constexpr std::size_t kStep = 32;

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> version{kIdle};
  };
  /// Readers without a slot. `place` has the version of the first reader.
  struct Crowd {
    Slot place;
    std::size_t readers = 0;
  };
  struct Pin {
    std::size_t count = 0;
    RetiredList dead;
  };

  /// Moves a piece to the newest pin before `below` that can see it, else to the limbo. Requires the mutex.
  void bury(const Retired& piece, std::uint64_t below);
  /// `leave_to_writer`: leaves the rest to the writer if it becomes active. The pieces are in the
  /// writer's malloc arena: while another thread frees them one by one, the writer would wait for the
  /// arena's lock, for half a millisecond or more.
  void reclaim(bool leave_to_writer);
  /// Moves retired pieces that are not in a list yet into one. Requires the mutex.
  void bury_all();
  /// Called by the writer with the mutex: buries the pieces that a version retires, releases the mutex,
  /// and frees some of the pending pieces.
  void bury_and_free(std::span<const Retired> retired, std::unique_lock<std::mutex> lock,
                     SpareNodes* spare);
  /// Removes unprotected pieces from the first portions of the limbo; moves the other pieces of these
  /// portions to its end. Requires the mutex.
  RetiredList take_free(std::size_t portions);
  static void free_all(RetiredList pieces, SpareNodes* spare = nullptr);
  void leave_crowd(const std::atomic<std::uint64_t>& place) const;

  mutable std::array<Slot, kSlots> slots_;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<bool> at_work_{false};  // the writer is creating a version
  mutable std::mutex mutex_;
  // Guarded by mutex_. Readers join one crowd while the other drains, so each crowd ends soon even if
  // there are always readers.
  mutable std::array<Crowd, 2> crowds_;
  mutable std::size_t joining_ = 0;    // guarded by mutex_: the crowd that readers join
  std::map<std::uint64_t, Pin> pins_;  // guarded by mutex_
  RetiredList limbo_;          // guarded by mutex_: not pinned, perhaps protected by a guard
  std::mutex unburied_mutex_;  // held only briefly; lock order: after mutex_
  RetiredList unburied_;       // guarded by unburied_mutex_: retired, not in a list yet
  std::atomic<bool> any_unburied_{false};
};

}  // namespace lookout::cache::detail
