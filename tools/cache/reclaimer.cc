#include "tools/cache/reclaimer.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <thread>

namespace lookout::cache::detail {

Reclaimer::~Reclaimer() {
  for (auto& [version, pin] : pins_) free_all(pin.dead);
  free_all(limbo_);
}

// Why this is safe: the writer stores a new root before it stores the new version, and frees
// nothing whose death lies behind the version of any slot. A reader fills its slot with the version
// and only then loads the root. If the writer's look at the slots came before, the root that the
// reader loads is at least as new as every death the writer acted on; if it came after, the writer
// saw the slot.
Reclaimer::Guard::Guard(const Reclaimer& reclaimer) {
  const std::size_t start = std::hash<std::thread::id>{}(std::this_thread::get_id());
  for (std::size_t i = start;; ++i) {
    std::atomic<std::uint64_t>& slot = reclaimer.slots_[i % kSlots].version;
    std::uint64_t idle = kIdle;
    if (slot.load(std::memory_order_relaxed) == kIdle &&
        slot.compare_exchange_strong(idle, reclaimer.version_.load(std::memory_order_seq_cst),
                                     std::memory_order_seq_cst)) {
      slot_ = &slot;
      return;
    }
    // More readers at once than slots: a moment later there is one again.
    if (i - start >= kSlots) std::this_thread::yield();
  }
}

Reclaimer::Guard::~Guard() { slot_->store(kIdle, std::memory_order_release); }

void Reclaimer::publish(std::uint64_t version, std::vector<Retired>& retired) {
  version_.store(version, std::memory_order_seq_cst);
  std::vector<Retired> free;
  {
    const std::lock_guard lock(mutex_);
    for (const Retired& piece : retired) bury(piece, piece.death);
    if (limbo_.size() >= kBatch) free = take_free();
  }
  retired.clear();
  free_all(free);
}

void Reclaimer::unpin(std::uint64_t version) {
  std::vector<Retired> free;
  {
    const std::lock_guard lock(mutex_);
    const auto it = pins_.find(version);
    if (--it->second.count > 0) return;
    const std::vector<Retired> dead = std::move(it->second.dead);
    pins_.erase(it);
    for (const Retired& piece : dead) bury(piece, version);
    if (!limbo_.empty()) free = take_free();
  }
  free_all(free);
}

void Reclaimer::reclaim() {
  std::vector<Retired> free;
  {
    const std::lock_guard lock(mutex_);
    free = take_free();
  }
  free_all(free);
}

void Reclaimer::bury(const Retired& piece, std::uint64_t below) {
  auto it = pins_.lower_bound(below);
  if (it != pins_.begin() && (--it)->first >= piece.birth) {
    it->second.dead.push_back(piece);
  } else {
    limbo_.push_back(piece);
  }
}

std::vector<Retired> Reclaimer::take_free() {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const Slot& slot : slots_) {
    const std::uint64_t version = slot.version.load(std::memory_order_seq_cst);
    if (version != kIdle) oldest = std::min(oldest, version);
  }
  const auto middle = std::partition(limbo_.begin(), limbo_.end(),
                                     [&](const Retired& piece) { return piece.death > oldest; });
  std::vector<Retired> free(middle, limbo_.end());
  limbo_.erase(middle, limbo_.end());
  return free;
}

void Reclaimer::free_all(std::vector<Retired>& pieces) {
  for (const Retired& piece : pieces) piece.dispose(piece.memory);
  pieces.clear();
}

}  // namespace lookout::cache::detail
