// FakeRecorder: records events for a test.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lookout/tools/record/event_recorder.h"

namespace lookout::test {

/// Keeps the recorded events; client-go's record.FakeRecorder. Safe to use from any thread.
class FakeRecorder : public record::EventRecorder {
 public:
  void record(record::Event given) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(given));
  }

  /// In the order in which they were recorded.
  std::vector<record::Event> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

  /// "Warning FailedMount no such volume", in the format of client-go's FakeRecorder.
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    const std::lock_guard lock(mutex_);
    out.reserve(events_.size());
    for (const record::Event& each : events_) {
      out.push_back(std::string(record::to_string(each.type)) + ' ' + each.reason + ' ' +
                    each.note);
    }
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<record::Event> events_;  // guarded by mutex_
};

}  // namespace lookout::test
