#include "apiserver/storage/etcd3/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lookout/base/detail/log.h"
#include "lookout/base/error.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLogInterval{5};

/// Converts "127.0.0.1:2379/" to "http://127.0.0.1:2379".
std::string normalized(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (url.find("://") == std::string::npos) url.insert(0, "http://");
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  if (!known || url.ends_with("/"))
    throw Error(fmt::format("\"{}\" is not an etcd endpoint such as http://127.0.0.1:2379", url));
  return url;
}

/// Without unusable URLs and duplicates.
std::vector<std::string> usable(const std::vector<std::string>& urls) {
  std::vector<std::string> out;
  for (const std::string& url : urls) {
    try {
      std::string one = normalized(url);
      if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(std::move(one));
    } catch (const Error& e) {
      log::warn("etcd: ignoring an unusable member: {}", e.what());
    }
  }
  return out;
}

}  // namespace

Members::Members(Connect connect, const std::vector<std::string>& urls)
    : connect_(std::move(connect)) {
  if (urls.empty()) throw Error("no etcd endpoint was given");
  for (const std::string& url : urls) list_.push_back(connect_(normalized(url)));
  current_ = list_.front();
}

Member Members::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::size_t Members::count() const {
  const std::lock_guard lock(mutex_);
  return list_.size();
}

void Members::leave(const Member& member, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (member != current_) return;
  const auto at = std::find(list_.begin(), list_.end(), member);
  const bool last = at == list_.end() || at + 1 == list_.end();
  current_ = last ? list_.front() : *(at + 1);
  // With a single member, every failed request comes here: limit the log lines.
  const auto now = steady_clock::now();
  if (current_ == member && now < next_log_) return;
  next_log_ = now + kLogInterval;
  log::info("etcd: {} is unavailable, switching to {}: {}", member->url(), current_->url(), why);
}

void Members::replace(const std::vector<std::string>& urls) {
  const std::vector<std::string> wanted = usable(urls);
  if (wanted.empty()) return;
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  std::vector<Member> list;
  bool changed = wanted.size() != list_.size();
  for (const std::string& url : wanted) {
    const auto known = std::find_if(list_.begin(), list_.end(),
                                    [&](const Member& member) { return member->url() == url; });
    changed = changed || known == list_.end();
    list.push_back(known == list_.end() ? connect_(url) : *known);
  }
  if (!changed) return;
  log::info("etcd: the members are {}", fmt::join(wanted, ", "));
  std::erase_if(former_, [](const auto& member) { return member.expired(); });
  for (const Member& member : list_) {
    if (std::find(list.begin(), list.end(), member) == list.end()) former_.push_back(member);
  }
  list_ = std::move(list);
  if (std::find(list_.begin(), list_.end(), current_) == list_.end()) current_ = list_.front();
}

void Members::shutdown() {
  std::vector<Member> all;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    all = list_;
    for (const auto& member : former_) {
      if (Member left = member.lock()) all.push_back(std::move(left));
    }
  }
  for (const Member& member : all) member->shutdown();
}

}  // namespace lookout::apiserver::storage::etcd3
