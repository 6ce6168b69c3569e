// UserCalls: calls of user functions.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace lookout::registry::detail {

/// For call_user().
void log_thrown(std::string_view what, std::string_view thrown);

/// Calls a function of the program, and logs exceptions as thrown by `what`.
template <class Call>
void call_user(std::string_view what, const Call& call) {
  try {
    call();
  } catch (const std::exception& e) {
    log_thrown(what, e.what());
  } catch (...) {
    log_thrown(what, "something that is not a std::exception");
  }
}

/// Tracks a registry's calls of user code, so that its shutdown can wait for them.
class UserCalls {
 public:
  /// call_user(), without a lock. Does nothing after forbid().
  template <class Call>
  void run(std::string_view what, const Call& call) {
    if (!enter()) return;
    const Leave leave{*this};
    call_user(what, call);
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

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<std::thread::id> running_;
  bool forbidden_ = false;
};

}  // namespace lookout::registry::detail
