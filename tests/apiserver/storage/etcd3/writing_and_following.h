// Writers and watchers for tests that all acknowledged writes reach all watchers once and in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apiserver/storage/revision.h"
#include "lookout/apiserver/storage/interface.h"
#include "tests/apiserver/storage/storage_client.h"

namespace lookout::apiserver::storage {

inline api::Object pod(const std::string& name, int version) {
  return api::Object::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":")" + name +
      R"(","labels":{"v":")" + std::to_string(version) + R"("}}})");
}

/// Writes continually and records acknowledged writes.
class Writer {
 public:
  /// Pauses after each write.
  Writer(Interface& storage, int id, std::chrono::milliseconds pause = {})
      : storage_(storage), id_(id), pause_(pause), thread_([this] { run(); }) {}
  ~Writer() { stop(); }

  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return acknowledged_.size();
  }
  /// The acknowledged writes by revision: "ADDED n/w0-3".
  std::map<Revision, std::string> acknowledged() const {
    const std::lock_guard lock(mutex_);
    return acknowledged_;
  }

 private:
  void run() {
    StorageClient client(storage_);
    std::mt19937 random(static_cast<unsigned>(id_));
    for (int i = 0; !stop_; ++i) {
      const std::string name = "w" + std::to_string(id_) + "-" + std::to_string(random() % 5);
      const std::string key = "n/" + name;
      try {
        const api::Object present = client.get(key);
        if (!present) {
          note("ADDED " + key, client.create(key, pod(name, i)));
        } else if (random() % 4 == 0) {
          note("DELETED " + key, client.remove(key));
        } else {
          note("MODIFIED " + key,
               client.update(key, [&](const api::Object&) { return pod(name, i); }));
        }
      } catch (const Error&) {
        // Not acknowledged: the write may have happened or not.
      }
      if (pause_.count() > 0) std::this_thread::sleep_for(pause_);
    }
  }
  void note(std::string what, const api::Object& object) {
    const std::lock_guard lock(mutex_);
    acknowledged_.emplace(revision_of(object), std::move(what));
  }

  Interface& storage_;
  const int id_;
  const std::chrono::milliseconds pause_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::map<Revision, std::string> acknowledged_;
  std::thread thread_;
};

/// Watches like a client: starts with the state, and again after a 410.
class Follower {
 public:
  explicit Follower(Interface& storage) : storage_(storage), thread_([this] { run(); }) {}
  ~Follower() { stop(); }

  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Revision seen() const { return seen_; }
  std::map<std::string, Revision> state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  /// The events it received, by revision.
  std::map<Revision, std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  /// The start and the last revision of its watches.
  std::vector<std::pair<Revision, Revision>> spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }
  std::string wrong() const {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }

 private:
  void run() {
    while (!stop_) {
      try {
        follow();
      } catch (const std::exception&) {
        // No etcd is available at the moment.
      }
    }
  }

  void follow() {
    TestThread thread;
    WatchOptions options;
    options.initial_events_end = true;
    auto watch = thread.run(storage_.watch("", true, options));
    const auto let_go = [&]() -> Awaitable<void> {
      watch.reset();
      co_return;
    };
    std::map<std::string, Revision> present;
    bool initial = true;
    std::vector<Event> events;
    while (!stop_) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
      const bool more = thread.run(watch->next(events, until));
      const std::lock_guard lock(mutex_);
      for (const Event& event : events) {
        if (event.type == api::EventType::kError) break;
        if (initial && event.type == api::EventType::kBookmark) {
          initial = false;
          state_ = present;
          spans_.emplace_back(event.revision, event.revision);
          seen_ = event.revision;
        } else if (initial) {
          present[event.object.key()] = event.revision;
        } else if (event.type != api::EventType::kBookmark) {
          take(event);
        }
      }
      if (!more) break;
    }
    thread.run(let_go());
  }

  void take(const Event& event) {
    const std::string key = event.object.key();
    if (event.revision <= seen_)
      wrong_ = "revision " + std::to_string(event.revision) + " after " + std::to_string(seen_);
    if (revision_of(event.object) != event.revision) wrong_ = "the object of another revision";
    seen_ = event.revision;
    spans_.back().second = event.revision;
    told_[event.revision] = std::string(api::to_string(event.type)) + " " + key;
    if (event.type == api::EventType::kDeleted) {
      if (state_.erase(key) != 1) wrong_ = "the deletion of what was not there: " + key;
    } else {
      const bool was_there = state_.contains(key);
      if (was_there != (event.type == api::EventType::kModified))
        wrong_ = std::string(api::to_string(event.type)) + " does not fit: " + key;
      state_[key] = event.revision;
    }
  }

  Interface& storage_;
  std::atomic<bool> stop_{false};
  std::atomic<Revision> seen_{0};
  mutable std::mutex mutex_;
  std::map<std::string, Revision> state_;
  std::map<Revision, std::string> told_;
  std::vector<std::pair<Revision, Revision>> spans_;
  std::string wrong_;
  std::thread thread_;
};

/// The number of acknowledged writes that a follower did not receive, or received differently.
/// Changes between two watches are covered by the state.
inline std::size_t missed(const Follower& follower,
                          const std::map<Revision, std::string>& acknowledged) {
  const auto told = follower.told();
  const auto spans = follower.spans();
  std::size_t out = 0;
  for (const auto& [revision, what] : acknowledged) {
    const bool watching = std::any_of(spans.begin(), spans.end(), [&](const auto& span) {
      return revision > span.first && revision <= span.second;
    });
    if (!watching) continue;
    const auto at = told.find(revision);
    if (at == told.end() || at->second != what) ++out;
  }
  return out;
}

}  // namespace lookout::apiserver::storage
