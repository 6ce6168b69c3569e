// Gate: shared or exclusive access to a namespace.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/base/async_event.h"
#include "lookout/base/event_loop.h"

namespace lookout::apiserver::quota {

/// A shared mutex per namespace, for coroutines. Exclusive requests come before later shared ones.
/// Thread-safe; must outlive its passes.
class Gate {
 public:
  /// Holds the lock until it is destroyed.
  class Pass {
   public:
    Pass() = default;
    Pass(Gate& gate, std::string ns, bool alone);
    ~Pass() { leave(); }
    Pass(Pass&& other) noexcept;
    Pass& operator=(Pass&& other) noexcept;
    /// Releases the lock early.
    void leave();

   private:
    Gate* gate_ = nullptr;
    std::string ns_;
    bool alone_ = false;
  };

  Awaitable<Pass> enter(std::string ns);
  Awaitable<Pass> enter_alone(std::string ns);

 private:
  struct State {
    int inside = 0;
    bool alone = false;
    /// The number of coroutines that wait for exclusive access.
    int wanted = 0;
    std::vector<AsyncEvent> waiting;
  };
  class Wish;

  void leave(const std::string& ns, bool alone);

  std::mutex mutex_;
  std::map<std::string, State> states_;  // guarded by mutex_; only those in use
};

}  // namespace lookout::apiserver::quota
