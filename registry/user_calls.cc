#include "registry/user_calls.h"

#include <algorithm>

#include "lookout/base/detail/log.h"

namespace lookout::registry::detail {

void log_thrown(std::string_view what, std::string_view thrown) {
  log::error("registry: {} threw: {}", what, thrown);
}

bool UserCalls::enter() {
  const std::lock_guard lock(mutex_);
  if (forbidden_) return false;
  running_.push_back(std::this_thread::get_id());
  return true;
}

void UserCalls::leave() {
  const std::lock_guard lock(mutex_);
  running_.erase(std::ranges::find(running_, std::this_thread::get_id()));
  if (running_.empty()) changed_.notify_all();
}

void UserCalls::forbid() {
  const std::lock_guard lock(mutex_);
  forbidden_ = true;
}

void UserCalls::wait() {
  std::unique_lock lock(mutex_);
  if (std::ranges::find(running_, std::this_thread::get_id()) != running_.end()) return;
  changed_.wait(lock, [this] { return running_.empty(); });
}

}  // namespace lookout::registry::detail
