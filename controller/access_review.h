// AccessReview: authenticates and authorizes clients through the API server.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/http/message.h"
#include "lookout/rest/client.h"

namespace lookout::controller::detail {

/// Results that are valid for a limited time; at most kMost of them. Thread-safe.
template <class Value>
class ExpiringMap {
 public:
  std::optional<Value> find(const std::string& key, Clock::TimePoint now) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.end <= now) return std::nullopt;
    return found->second.value;
  }
  void put(std::string key, Value value, Clock::TimePoint now, Clock::Duration lifetime) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= kMost) {
      std::erase_if(entries_, [now](const auto& entry) { return entry.second.end <= now; });
      if (entries_.size() >= kMost) entries_.clear();
    }
    entries_.insert_or_assign(std::move(key), Entry{std::move(value), now + lifetime});
  }

 private:
  struct Entry {
    Value value;
    Clock::TimePoint end;
  };
  static constexpr std::size_t kMost = 1000;

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // guarded by mutex_
};

/// Admits requests whose bearer token the API server accepts (TokenReview) and whose user may access
/// the path (SubjectAccessReview): controller-runtime's filters.WithAuthenticationAndAuthorization,
/// with its answers and the lifetimes of its caches. Thread-safe.
class AccessReview {
 public:
  AccessReview(rest::Client client, std::shared_ptr<Clock> clock);

  /// The answer that refuses the request; nullopt: it is admitted. `request` must live until the call
  /// has ended.
  Awaitable<std::optional<http::Response>> refuse(const http::Request& request);

 private:
  /// Null: not authenticated.
  Awaitable<std::shared_ptr<const api::Object>> user_of(std::string token, std::stop_token stop);
  Awaitable<bool> may(std::shared_ptr<const api::Object> user, std::string verb, std::string path,
                      std::stop_token stop);

  const rest::Client client_;
  const std::shared_ptr<Clock> clock_;
  // By the hash of the token.
  ExpiringMap<std::shared_ptr<const api::Object>> users_;
  ExpiringMap<bool> decisions_;
};

}  // namespace lookout::controller::detail
