// LeaseEvents: the Events of leader election.
#pragma once

#include <memory>
#include <string>

#include "lookout/controller/event_sink.h"
#include "lookout/tools/record/event_recorder.h"

namespace lookout::controller::detail {

/// Passes the events of a LeaderElector to a manager's EventSink, as controller-runtime's manager does;
/// the candidate's identity replaces the controller's name.
class LeaseEvents : public record::EventRecorder {
 public:
  LeaseEvents(std::shared_ptr<EventSink> sink, std::string identity);
  void record(record::Event given) override;

 private:
  const std::shared_ptr<EventSink> sink_;
  const std::string identity_;
};

}  // namespace lookout::controller::detail
