// When memory of an old version may go.
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

/// Nodes of one size that are free, for a writer to make the next ones of: malloc keeps only a few
/// such pieces at hand, and nodes become free in dozens.
class SpareNodes {
 public:
  SpareNodes() = default;
  ~SpareNodes() { keep(0); }
  SpareNodes(const SpareNodes&) = delete;
  SpareNodes& operator=(const SpareNodes&) = delete;

  /// Retired::dispose of such a node. Who disposes of it may also give it to add().
  static void dispose(void* node) { std::free(node); }
  void add(void* node) { nodes_.size() < most_ ? nodes_.push_back(node) : std::free(node); }
  /// Null if there is none.
  void* take() {
    if (nodes_.empty()) return nullptr;
    void* const node = nodes_.back();
    nodes_.pop_back();
    return node;
  }
  /// Keeps at most so many, and never more than a hundred: none at first.
  void keep(std::size_t most) {
    constexpr std::size_t kEnough = 100;
    most_ = std::min(most, kEnough);
    for (; nodes_.size() > most_; nodes_.pop_back()) std::free(nodes_.back());
  }

 private:
  std::size_t most_ = 0;
  std::vector<void*> nodes_;
};

/// Pieces, in portions: to add one, or all of another list, moves nothing that is there, however
/// much that is.
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
    // (One after the other: a chain of many would end in as many calls.)
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

/// Says which versions of a store are still being read, and frees what no reader can reach any
/// more.
///
/// There are two kinds of readers. A *pin* holds one version for as long as it likes (a snapshot):
/// what is retired later goes to the newest pinned version that can see it, and when that pin goes,
/// to the next older one that can, or away. So a snapshot held for an hour keeps what it shows and
/// nothing of what came and went meanwhile. A *guard* is for one look-up: it announces, in a slot
/// that hardly any other thread uses, that nothing that is alive now may go; no lock, and no cache
/// line that all readers write to.
///
/// Neither keeps the writer waiting. A snapshot of a long list may have kept a hundred thousand
/// pieces; what is done with them under the mutex is done in small parts, a writer who finds the
/// mutex taken comes back to it with the next version, and while it is at work it frees by itself,
/// with each version a little more than it retires.
///
/// One writer at a time publishes versions. All functions may be called from any thread unless they
/// say otherwise.
class Reclaimer {
 public:
  Reclaimer() = default;
  /// Nobody may be reading.
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  /// Protects every version that is current while it lives. Short-lived: nothing is freed
  /// meanwhile.
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
  /// What a guard does at its begin and its end. Readers for whom there is no slot are a crowd: they
  /// share one, and are counted under the mutex.
  std::atomic<std::uint64_t>* enter() const;
  void leave(std::atomic<std::uint64_t>* place) const {
    if (place == &crowds_[0].place.version || place == &crowds_[1].place.version)
      return leave_crowd(*place);
    place->store(kIdle, std::memory_order_release);
  }

  /// Calls `current` to learn the current version and pins it; returns the version.
  template <class Current>
  std::uint64_t pin(Current current) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t version = current();
    ++pins_[version].count;
    return version;
  }
  void unpin(std::uint64_t version);

  /// By the writer, before it makes a version; publish() ends it.
  void begin_write() { at_work_.store(true, std::memory_order_relaxed); }
  /// By the writer, after the version's root has been stored where readers find it. Nodes that are
  /// free by now go to `spare`, unless that is null.
  void publish(std::uint64_t version, std::vector<Retired>& retired, SpareNodes* spare = nullptr);

  /// By the writer, instead of publish(), for a version that changes memory where it lies: calls
  /// `change` and returns true, unless a pin sees that memory, which is there since the version
  /// `birth`, or the mutex is taken. No pin begins meanwhile. `change` ends with a sequentially
  /// consistent store of something that guards load before they look at that memory.
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

  /// Frees what can be freed now.
  void reclaim();

 private:
  static constexpr std::size_t kSlots = 16;
  static constexpr std::uint64_t kIdle = 0;
  // Freeing costs a look at every slot: done for many pieces at once, by the writer when there are
  // so many portions.
  static constexpr std::size_t kBatch = 4;
  // When there are so many portions the writer waits for the mutex.
  static constexpr std::size_t kMostUnburied = 2048;
  // How many portions are looked at without letting go of the mutex.
  static constexpr std::size_t kStep = 32;

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> version{kIdle};
  };
  /// Readers without a slot. `place` has the version of the first of them.
  struct Crowd {
    Slot place;
    std::size_t readers = 0;
  };
  struct Pin {
    std::size_t count = 0;
    RetiredList dead;
  };

  /// To the newest pin before `below` that can see it, else to the limbo. Under the mutex.
  void bury(const Retired& piece, std::uint64_t below);
  /// `leave_to_writer`: leaves the rest to a writer who turns out to be at work. What it has
  /// allocated lies in its part of the heap: while another thread frees that, piece after piece,
  /// the writer waits for malloc's lock, for half a millisecond and more.
  void reclaim(bool leave_to_writer);
  /// Moves retired pieces that are in no list yet into one. Under the mutex.
  void bury_all();
  /// By the writer, who has the mutex: what a version retires goes to its place, and some of what
  /// waits is freed once the mutex is free again.
  void bury_and_free(std::span<const Retired> retired, std::unique_lock<std::mutex> lock,
                     SpareNodes* spare);
  /// Takes what no guard protects out of the first portions of the limbo; the others of these go to
  /// its end. Under the mutex.
  RetiredList take_free(std::size_t portions);
  static void free_all(RetiredList pieces, SpareNodes* spare = nullptr);
  void leave_crowd(const std::atomic<std::uint64_t>& place) const;

  mutable std::array<Slot, kSlots> slots_;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<bool> at_work_{false};  // the writer is making a version
  mutable std::mutex mutex_;
  // Guarded by mutex_. Readers join one crowd while the other leaves: so each is gone before long,
  // however many readers there are all the time.
  mutable std::array<Crowd, 2> crowds_;
  mutable std::size_t joining_ = 0;    // guarded by mutex_: the crowd that readers join
  std::map<std::uint64_t, Pin> pins_;  // guarded by mutex_
  RetiredList limbo_;                  // guarded by mutex_: pinned by nobody, perhaps guarded
  std::mutex unburied_mutex_;          // held for moments only; taken after mutex_ if both are
  RetiredList unburied_;               // guarded by unburied_mutex_: retired, and in no list yet
  std::atomic<bool> any_unburied_{false};
};

}  // namespace lookout::cache::detail
