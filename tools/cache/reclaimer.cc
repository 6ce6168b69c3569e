#include "tools/cache/reclaimer.h"

#include <algorithm>
#include <limits>

namespace lookout::cache::detail {

namespace {

/// Numbers threads, so that they start their search for a slot at different slots.
std::size_t number_of_this_thread() {
  static std::atomic<std::size_t> last{0};
  static thread_local std::size_t number = 0;
  if (number == 0) number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

void RetiredList::add(const Retired& piece) {
  if (last_ == nullptr || last_->size == Portion::kPieces) {
    add(std::make_unique<Portion>());
  }
  last_->pieces[last_->size++] = piece;
  last_->last_death = std::max(last_->last_death, piece.death);
}

void RetiredList::add(std::unique_ptr<Portion> portion) {
  Portion* const added = portion.get();
  (last_ == nullptr ? first_ : last_->next) = std::move(portion);
  last_ = added;
  ++portions_;
}

void RetiredList::add(RetiredList&& other) {
  if (other.last_ == nullptr) return;
  (last_ == nullptr ? first_ : last_->next) = std::move(other.first_);
  last_ = std::exchange(other.last_, nullptr);
  portions_ += std::exchange(other.portions_, 0);
}

std::unique_ptr<RetiredList::Portion> RetiredList::take() {
  std::unique_ptr<Portion> out = std::move(first_);
  if (out == nullptr) return out;
  first_ = std::move(out->next);
  if (first_ == nullptr) last_ = nullptr;
  --portions_;
  return out;
}

Reclaimer::~Reclaimer() {
  for (auto& [version, pin] : pins_) free_all(std::move(pin.dead));
  free_all(std::move(unburied_));
  free_all(std::move(limbo_));
}

// Why this is safe: the writer stores a new root before it stores the new version, and frees
// nothing whose death is later than the version in any slot. A reader stores the version in its slot
// and only then loads the root. If the writer checked the slots before, the root that the reader
// loads is at least as new as every death that the writer acted on; if it checked them after, the
// writer saw the slot.
std::atomic<std::uint64_t>* Reclaimer::enter() const {
  const std::size_t start = number_of_this_thread();
  for (std::size_t i = start; i < start + kSlots; ++i) {
    std::atomic<std::uint64_t>& slot = slots_[i % kSlots].version;
    std::uint64_t idle = kIdle;
    if (slot.load(std::memory_order_relaxed) == kIdle &&
        slot.compare_exchange_strong(idle, version_.load(std::memory_order_seq_cst),
                                     std::memory_order_seq_cst)) {
      return &slot;
    }
  }
  // There are more concurrent readers than slots. Memory is freed only after a check of this version
  // under the same mutex, so one of the two comes first.
  const std::lock_guard lock(mutex_);
  if (crowds_[1 - joining_].readers == 0) joining_ = 1 - joining_;
  Crowd& crowd = crowds_[joining_];
  if (crowd.readers++ == 0) crowd.place.version = version_.load(std::memory_order_seq_cst);
  return &crowd.place.version;
}

void Reclaimer::leave_crowd(const std::atomic<std::uint64_t>& place) const {
  const std::lock_guard lock(mutex_);
  Crowd& crowd = &place == &crowds_[0].place.version ? crowds_[0] : crowds_[1];
  if (--crowd.readers == 0) crowd.place.version = kIdle;
}

void Reclaimer::publish(std::uint64_t version, std::vector<Retired>& retired, SpareNodes* spare) {
  version_.store(version, std::memory_order_seq_cst);
  // (Also on an early return or an exception.)
  struct AtEnd {
    ~AtEnd() { at_work.store(false, std::memory_order_relaxed); }
    std::atomic<bool>& at_work;
  } const at_end{at_work_};
  // The holder of the mutex may have been preempted, so do not wait: pending pieces can wait longer.
  // (A pin that is released in the meantime has fewer pieces; nothing is freed before it is buried.)
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    bool many = false;
    {
      const std::lock_guard unburied_lock(unburied_mutex_);
      for (const Retired& piece : retired) unburied_.add(piece);
      any_unburied_.store(true, std::memory_order_relaxed);
      many = unburied_.portions() >= kMostUnburied;
    }
    retired.clear();
    if (!many) return;
    lock.lock();
  }
  bury_and_free(retired, std::move(lock), spare);
  retired.clear();
}

void Reclaimer::bury_and_free(std::span<const Retired> retired, std::unique_lock<std::mutex> lock,
                              SpareNodes* spare) {
  bury_all();
  for (const Retired& piece : retired) bury(piece, piece.death);
  RetiredList free;
  if (limbo_.portions() >= kBatch)
    free = take_free(kBatch / 2 + 2 * retired.size() / RetiredList::Portion::kPieces);
  lock.unlock();
  free_all(std::move(free), spare);
}

void Reclaimer::unpin(std::uint64_t version) {
  RetiredList dead;
  {
    const std::lock_guard lock(mutex_);
    const auto it = pins_.find(version);
    if (--it->second.count > 0) return;
    if (it == pins_.begin()) {
      limbo_.add(std::move(it->second.dead));
    } else {
      dead = std::move(it->second.dead);
    }
    pins_.erase(it);
  }
  // An older pin may see some of the pieces. (Pins may change in the meantime; pieces in `dead` are not
  // freed by others.)
  while (const auto portion = dead.take()) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < portion->size; ++i) bury(portion->pieces[i], version);
  }
  reclaim(true);
}

void Reclaimer::reclaim() { reclaim(false); }

void Reclaimer::reclaim(bool leave_to_writer) {
  std::size_t left = 1;
  for (bool first = true; left > 0; first = false) {
    RetiredList free;
    {
      const std::lock_guard lock(mutex_);
      if (first) {
        bury_all();
        left = limbo_.portions();
      }
      const std::size_t step = std::min(left, kStep);
      free = take_free(step);
      left -= step;
    }
    while (const auto portion = free.take()) {
      for (std::size_t i = 0; i < portion->size; ++i) {
        if (leave_to_writer && at_work_.load(std::memory_order_relaxed)) {
          const std::lock_guard lock(mutex_);
          for (; i < portion->size; ++i) limbo_.add(portion->pieces[i]);
          limbo_.add(std::move(free));
          return;
        }
        portion->pieces[i].dispose(portion->pieces[i].memory);
      }
    }
  }
}

void Reclaimer::bury_all() {
  if (!any_unburied_.load(std::memory_order_relaxed)) return;
  RetiredList all;
  {
    const std::lock_guard lock(unburied_mutex_);
    all = std::move(unburied_);
    any_unburied_.store(false, std::memory_order_relaxed);
  }
  while (const auto portion = all.take()) {
    for (std::size_t i = 0; i < portion->size; ++i)
      bury(portion->pieces[i], portion->pieces[i].death);
  }
}

void Reclaimer::bury(const Retired& piece, std::uint64_t below) {
  if (pins_.empty()) return limbo_.add(piece);
  auto it = pins_.lower_bound(below);
  if (it != pins_.begin() && (--it)->first >= piece.birth) {
    it->second.dead.add(piece);
  } else {
    limbo_.add(piece);
  }
}

RetiredList Reclaimer::take_free(std::size_t portions) {
  RetiredList free;
  portions = std::min(portions, limbo_.portions());
  if (portions == 0) return free;
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  const auto protect = [&oldest](const Slot& slot) {
    const std::uint64_t version = slot.version.load(std::memory_order_seq_cst);
    if (version != kIdle) oldest = std::min(oldest, version);
  };
  for (const Slot& slot : slots_) protect(slot);
  for (const Crowd& crowd : crowds_) protect(crowd.place);
  for (; portions > 0; --portions) {
    auto portion = limbo_.take();
    (portion->last_death <= oldest ? free : limbo_).add(std::move(portion));
  }
  return free;
}

void Reclaimer::free_all(RetiredList pieces, SpareNodes* spare) {
  while (const auto portion = pieces.take()) {
    for (std::size_t i = 0; i < portion->size; ++i) {
      const Retired& piece = portion->pieces[i];
      if (spare != nullptr && piece.dispose == &SpareNodes::dispose) {
        spare->add(piece.memory);
      } else {
        piece.dispose(piece.memory);
      }
    }
  }
}

}  // namespace lookout::cache::detail
