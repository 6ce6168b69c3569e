// UserCalls: calls of user functions.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace lookout::registry::detail {

/// Tracks a registry's calls of user code, so that its shutdown can wait for them.
class UserCalls {
 public:
  /// Calls the function without a lock, and logs exceptions as thrown by `what`. Does nothing after
  /// forbid().
  template <class Call>
  void run(std::string_view what, const Call& call) {
    if (!enter()) return;
    const Leave leave{*this};
    try {
      call();
    } catch (const std::exception& e) {
      log(what, e.what());
    } catch (...) {
      log(what, "something that is not a std::exception");
    }
  }

  /// Prevents further calls.
  void forbid();
  /// Waits for running calls. Does nothing if called from one of them, to prevent a deadlock.
  void wait();

 private:
  struct Leave {
    UserCalls& calls;
    ~Leave() { calls.leave(); }
  };
  bool enter();
  void leave();
  static void log(std::string_view what, std::string_view thrown);

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<std::thread::id> running_;
  bool forbidden_ = false;
};

}  // namespace lookout::registry::detail
