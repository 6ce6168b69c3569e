// The user's functions, and their end.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace lookout::registry::detail {

/// Keeps account of the calls of user code that a registry makes, so that its end can wait for
/// them.
class UserCalls {
 public:
  /// Calls it, without a lock; logs what it throws as thrown by `what`. Does nothing after
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

  /// From now on no call begins.
  void forbid();
  /// Waits for calls that are running, unless it is called by one of them: calls that wait for each
  /// other's end would wait for ever.
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
