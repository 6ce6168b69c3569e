#include "lookout/tools/leaderelection/lease_candidate.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "lookout/api/draft.h"
#include "lookout/api/error.h"
#include "lookout/api/fields.h"
#include "lookout/api/resource.h"
#include "lookout/api/status.h"
#include "lookout/api/time.h"
#include "lookout/base/detail/log.h"
#include "lookout/rest/error.h"

namespace lookout::leaderelection {
namespace {

CandidateOptions checked(CandidateOptions options) {
  if (options.name.empty() || options.ns.empty() || options.lease_name.empty() ||
      options.binary_version.empty() || options.strategy.empty())
    throw InvalidArgument(
        "lease candidate: name, namespace, lease name, binary version and strategy are needed");
  if (options.renew_period <= std::chrono::milliseconds(0) ||
      options.retry_period <= std::chrono::milliseconds(0) || !options.clock)
    throw InvalidArgument("lease candidate: there is no clock, or a period is not positive");
  options.renew_period = Clock::limited(options.renew_period);
  options.retry_period = Clock::limited(options.retry_period);
  return options;
}

api::Resource lease_candidates() {
  return {"coordination.k8s.io", "v1beta1", "LeaseCandidate", "leasecandidates", true};
}

std::string micro_now() {
  return api::format_micro_time(
      std::chrono::time_point_cast<api::Time::duration>(std::chrono::system_clock::now()));
}

/// True if the server has pinged the candidate and waits for a renewal.
bool pinged(const api::Object& candidate) {
  const auto ping = api::parse_time(candidate["spec"]["pingTime"].as_string());
  if (!ping) return false;
  const auto renewed = api::parse_time(candidate["spec"]["renewTime"].as_string());
  return !renewed || *ping > *renewed;
}

/// Requests a stop after `time`, unless it has been requested before.
Awaitable<void> stop_after(std::shared_ptr<Clock> clock, Clock::Duration time,
                           std::stop_source source) {
  const bool slept = co_await clock->sleep(time, source.get_token());
  if (slept) source.request_stop();
}

}  // namespace

LeaseCandidate::LeaseCandidate(rest::Client client, CandidateOptions options)
    : client_(std::move(client)),
      options_(checked(std::move(options))),
      candidates_(client_.resource(lease_candidates(), options_.ns)) {}

void LeaseCandidate::run(std::stop_token stop) const { client_.loop().run(async_run(stop)); }

Awaitable<void> LeaseCandidate::async_run(std::stop_token stop) const {
  while (!stop.stop_requested()) {
    api::Object candidate;
    try {
      candidate = co_await renew(stop);
      const bool pinged = co_await wait_for_ping(candidate, stop);
      if (pinged) continue;
    } catch (const std::exception& e) {
      if (stop.stop_requested()) break;
      log::warn("lease candidate {}/{}: {}", options_.ns, options_.name, e.what());
    }
    co_await options_.clock->sleep(options_.retry_period, stop);
  }
}

/// Creates the LeaseCandidate, or sets its renew time; returns the stored object.
Awaitable<api::Object> LeaseCandidate::renew(std::stop_token stop) const {
  rest::CallOptions call;
  call.stop = std::move(stop);
  const rest::GetOptions get;
  const rest::CreateOptions options;
  const api::Object known = co_await candidates_.async_find(options_.name, get, call);
  const api::ObjectDraft draft(known);
  const api::DraftPart spec = draft["spec"];
  spec["renewTime"].set(micro_now());
  if (!known) {
    draft["apiVersion"].set("coordination.k8s.io/v1beta1");
    draft["kind"].set("LeaseCandidate");
    draft["metadata"]["name"].set(options_.name);
    draft["metadata"]["namespace"].set(options_.ns);
    spec["leaseName"].set(options_.lease_name);
    spec["binaryVersion"].set(options_.binary_version);
    if (!options_.emulation_version.empty())
      spec["emulationVersion"].set(options_.emulation_version);
    spec["strategy"].set(options_.strategy);
    const api::Object made = draft.build();
    co_return co_await candidates_.async_create(made, options, call);
  }
  const api::Object renewed = draft.build();
  const std::string no_subresource;
  co_return co_await candidates_.async_update(renewed, options, no_subresource, call);
}

/// Waits until the candidate must be renewed: the server has pinged it, it was deleted, or the period
/// is over. Returns false if the watch has ended, so that the caller pauses before the next watch.
Awaitable<bool> LeaseCandidate::wait_for_ping(api::Object candidate, std::stop_token stop) const {
  std::stop_source over;
  const std::stop_callback on_stop(stop, [&over] { over.request_stop(); });
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::co_spawn(executor, stop_after(options_.clock, options_.renew_period, over),
                        [](const std::exception_ptr&) {});
  rest::ListOptions list;
  list.field_selector = "metadata.name=" + api::fields::escape_value(options_.name);
  list.resource_version = candidate.resource_version();
  const rest::DecodeOptions decode;
  rest::CallOptions call;
  call.stop = over.get_token();
  std::exception_ptr failure;
  bool asked = false;
  try {
    rest::WatchStream stream = co_await candidates_.async_watch(list, decode, call);
    std::vector<api::WatchEvent> events;
    while (!asked) {
      const bool more = co_await stream.async_next(events);
      if (!more) break;
      for (const api::WatchEvent& event : events) {
        // An error such as 410 ends the watch.
        if (event.type == api::EventType::kError) break;
        asked = asked || event.type == api::EventType::kDeleted || pinged(event.object);
      }
    }
  } catch (...) {
    asked = over.stop_requested();
    if (!asked) failure = std::current_exception();
  }
  over.request_stop();
  if (failure) std::rethrow_exception(failure);
  co_return asked;
}

}  // namespace lookout::leaderelection
