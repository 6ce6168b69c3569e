// When memory of an old version may go.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace lookout::cache::detail {

/// A piece of memory that belongs to the versions from `birth` up to, not including, `death`.
struct Retired {
  void* memory = nullptr;
  void (*dispose)(void*) = nullptr;
  std::uint64_t birth = 0;
  std::uint64_t death = 0;
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
    explicit Guard(const Reclaimer& reclaimer);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<std::uint64_t>* slot_ = nullptr;
  };

  /// Calls `current` to learn the current version and pins it; returns the version.
  template <class Current>
  std::uint64_t pin(Current current) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t version = current();
    ++pins_[version].count;
    return version;
  }
  void unpin(std::uint64_t version);

  /// By the writer, after the version's root has been stored where readers find it.
  void publish(std::uint64_t version, std::vector<Retired>& retired);

  /// Frees what can be freed now.
  void reclaim();

 private:
  static constexpr std::size_t kSlots = 16;
  static constexpr std::uint64_t kIdle = 0;
  // Freeing costs a look at every slot: done for many pieces at once.
  static constexpr std::size_t kBatch = 256;

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> version{kIdle};
  };
  struct Pin {
    std::size_t count = 0;
    std::vector<Retired> dead;
  };

  /// To the newest pin before `below` that can see it, else to the limbo. Under the mutex.
  void bury(const Retired& piece, std::uint64_t below);
  /// Takes what no guard protects out of the limbo. Under the mutex.
  std::vector<Retired> take_free();
  static void free_all(std::vector<Retired>& pieces);

  mutable std::array<Slot, kSlots> slots_;
  std::atomic<std::uint64_t> version_{1};
  std::mutex mutex_;
  std::map<std::uint64_t, Pin> pins_;  // guarded by mutex_
  std::vector<Retired> limbo_;         // guarded by mutex_: pinned by nobody, perhaps guarded
};

}  // namespace lookout::cache::detail
