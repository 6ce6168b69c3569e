#include "apiserver/quota/gate.h"

#include <boost/asio/this_coro.hpp>

namespace lookout::apiserver::quota {

Gate::Pass::Pass(Gate& gate, std::string ns, bool alone)
    : gate_(&gate), ns_(std::move(ns)), alone_(alone) {}

Gate::Pass::Pass(Pass&& other) noexcept
    : gate_(std::exchange(other.gate_, nullptr)), ns_(std::move(other.ns_)), alone_(other.alone_) {}

Gate::Pass& Gate::Pass::operator=(Pass&& other) noexcept {
  if (this != &other) {
    leave();
    gate_ = std::exchange(other.gate_, nullptr);
    ns_ = std::move(other.ns_);
    alone_ = other.alone_;
  }
  return *this;
}

void Gate::Pass::leave() {
  if (Gate* const gate = std::exchange(gate_, nullptr)) gate->leave(ns_, alone_);
}

/// Counts a coroutine that waits for exclusive access until its wait ends in any way.
class Gate::Wish {
 public:
  Wish(Gate& gate, const std::string& ns) : gate_(gate), ns_(ns) {
    const std::lock_guard lock(gate_.mutex_);
    ++gate_.states_[ns_].wanted;
  }
  ~Wish() {
    std::vector<AsyncEvent> waiting;
    const std::lock_guard lock(gate_.mutex_);
    const auto state = gate_.states_.find(ns_);
    --state->second.wanted;
    // The waiting coroutines check again.
    for (const AsyncEvent& bell : std::exchange(state->second.waiting, {})) bell.ring();
    if (state->second.inside == 0 && state->second.wanted == 0) gate_.states_.erase(state);
  }
  Wish(const Wish&) = delete;
  Wish& operator=(const Wish&) = delete;

 private:
  Gate& gate_;
  const std::string& ns_;
};

Awaitable<Gate::Pass> Gate::enter(std::string ns) {
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      State& state = states_[ns];
      if (!state.alone && state.wanted == 0) {
        ++state.inside;
        break;
      }
      state.waiting.push_back(bell);
    }
    co_await bell.wait();
  }
  co_return Pass(*this, std::move(ns), false);
}

Awaitable<Gate::Pass> Gate::enter_alone(std::string ns) {
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  const Wish wish(*this, ns);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      State& state = states_[ns];
      if (state.inside == 0) {
        state.inside = 1;
        state.alone = true;
        break;
      }
      state.waiting.push_back(bell);
    }
    co_await bell.wait();
  }
  std::string same = ns;
  co_return Pass(*this, std::move(same), true);
}

void Gate::leave(const std::string& ns, bool alone) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(ns);
  State& state = found->second;
  --state.inside;
  if (alone) state.alone = false;
  if (state.inside != 0) return;
  for (const AsyncEvent& bell : std::exchange(state.waiting, {})) bell.ring();
  if (state.wanted == 0) states_.erase(found);
}

}  // namespace lookout::apiserver::quota
