#pragma once

#include <lookout/base/cron_schedule.h>
#include <lookout/controller/manager.h>

#include <chrono>
#include <functional>
#include <optional>

namespace cronjob {

using lookout::CronSchedule;
using lookout::CronScheduleError;
using Time = CronSchedule::Time;

/// The time of day, for tests to set.
using Now = std::function<Time()>;
inline Time machine_time() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

/// When a CronJob was to run last, if it has not, and when it runs next.
struct Runs {
  std::optional<Time> missed;
  Time next;
};
/// `earliest`: the last run, or the creation. Nothing before `deadline` is made up for. Throws
/// CronScheduleError if there are more than 100 missed runs, or no next one.
Runs runs_of(const CronSchedule& schedule, Time earliest,
             std::optional<std::chrono::seconds> deadline, Time now);

/// Adds the controller of CronJobs, which start Jobs.
void add_cronjob_controller(lookout::controller::Manager& manager, Now now = machine_time);

}  // namespace cronjob
