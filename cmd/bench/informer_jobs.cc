#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/load/objects.h"
#include "cmd/bench/jobs.h"
#include "cmd/bench/usage.h"
#include "cmd/duration.h"
#include "cmd/say.h"
#include "lookout/base/numbers.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::cmd::bench {
namespace {

namespace load = lookout::bench;
using std::chrono::microseconds;
using std::chrono::system_clock;

std::int64_t now_in_microseconds() {
  return std::chrono::duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

std::int64_t sent_at(const api::Object& object) {
  const std::string_view text = object.annotations()[load::kSentAnnotation].as_string();
  return base::parse_number<std::int64_t>(text).value_or(0);
}

api::Resource resource_for(const JobOptions& options) {
  const load::ObjectType* type = load::object_type(options.resource);
  if (type == nullptr) throw Error(fmt::format("there are no {} to measure", options.resource));
  const std::size_t slash = type->group_version.find('/');
  api::Resource out;
  if (slash != std::string_view::npos) out.group = type->group_version.substr(0, slash);
  out.version = type->group_version.substr(slash == std::string_view::npos ? 0 : slash + 1);
  out.plural = type->plural;
  out.kind = type->kind;
  out.namespaced = type->namespaced;
  return out;
}

/// Informers like those of a program.
class Informers {
 public:
  explicit Informers(const JobOptions& options)
      : resource_(resource_for(options)), projection_(projection_for(options.keep)) {
    informer::FactoryOptions factory_options;
    factory_options.use_watch_list = options.mode != "list";
    factory_ = std::make_unique<informer::SharedInformerFactory>(rest::Client(options.config),
                                                                 std::move(factory_options));
  }

  std::shared_ptr<informer::SharedIndexInformer> of(std::string ns) {
    return factory_->for_resource(resource_, {.ns = std::move(ns), .projection = projection_});
  }
  informer::SharedInformerFactory& factory() { return *factory_; }

 private:
  api::Resource resource_;
  api::Projection projection_;
  std::unique_ptr<informer::SharedInformerFactory> factory_;
};

void require(bool done, const char* what) {
  if (!done) throw Error(fmt::format("stopped before {}", what));
}

void report_latencies(std::vector<std::int64_t>& latencies, Result& result) {
  std::sort(latencies.begin(), latencies.end());
  const auto at = [&](std::size_t hundredths) {
    const std::size_t index = std::min(latencies.size() * hundredths / 100, latencies.size() - 1);
    return latencies.empty() ? 0.0 : static_cast<double>(latencies[index]);
  };
  result.set("latency_p50_us", at(50));
  result.set("latency_p99_us", at(99));
  result.set("latency_max_us", at(100));
}

void describe(const char* job, const JobOptions& options, Result& result) {
  result.set("job", job);
  result.set("client", "lookout");
  result.set("mode", options.mode);
  result.set("keep", options.keep);
}

}  // namespace

api::Projection projection_for(const std::string& keep) {
  if (keep == "all") return {};
  if (keep == "unmanaged") return api::Projection::without_managed_fields();
  if (keep == "registry") return registry::kratos::pod_projection();
  throw Error(fmt::format("\"{}\" is not one of all, unmanaged, registry", keep));
}

void check_server(const JobOptions& options) {
  rest::ListOptions one;
  one.limit = 1;
  rest::Client(options.config).resource(resource_for(options)).list(one);
}

Result sync_job(const JobOptions& options, std::stop_token stop) {
  const std::int64_t memory_before = process_status("RssAnon");
  const Usage begin = Usage::now();
  Informers informers(options);
  const auto informer = informers.of("");
  std::atomic<std::int64_t> added{0};
  informer::EventHandler<api::Object> handler;
  handler.on_add = [&](const api::Object&) { added.fetch_add(1, std::memory_order_relaxed); };
  const auto registration = informer->add_handler(std::move(handler));
  informers.factory().start();
  require(registration.wait_for_sync(stop), "the first list was complete");
  const Usage end = Usage::now();
  Result result;
  describe("sync", options, result);
  end.report_since(begin, result);
  const auto objects = static_cast<std::int64_t>(informer->store().size());
  result.set("objects", objects);
  report_memory(memory_before, result);
  std::int64_t body = 0;
  for (const api::Object& object : informer->store().snapshot().objects())
    body += static_cast<std::int64_t>(object.memory_size());
  if (objects > 0) result.set("object_bytes", body / objects);
  return result;
}

Result events_job(const JobOptions& options, std::stop_token stop) {
  Informers informers(options);
  const auto informer = informers.of("");
  // Written by the handler, which runs one call at a time; read when it has seen the last event.
  std::vector<std::int64_t> latencies;
  latencies.reserve(options.events);
  std::int64_t first_sent = 0;
  std::int64_t last_seen = 0;
  Usage end;
  std::stop_source all_seen;
  informer::EventHandler<api::Object> handler;
  handler.on_update = [&](const api::Object&, const api::Object& object) {
    const std::int64_t seen = now_in_microseconds();
    const std::int64_t sent = sent_at(object);
    if (latencies.empty()) first_sent = sent;
    latencies.push_back(seen - sent);
    if (latencies.size() == options.events) {
      last_seen = seen;
      end = Usage::now();
      all_seen.request_stop();
    }
  };
  const auto registration = informer->add_handler(std::move(handler));
  informers.factory().start();
  require(registration.wait_for_sync(stop), "the first list was complete");
  const Usage begin = Usage::now();
  {
    const std::stop_callback stopped(stop, [&] { all_seen.request_stop(); });
    wait_for_stop(all_seen.get_token());
  }
  require(!stop.stop_requested(), "all events had come");

  Result result;
  describe("events", options, result);
  const double wall = static_cast<double>(last_seen - first_sent) / 1e6;
  const auto events = static_cast<double>(latencies.size());
  result.set("wall_s", wall);
  result.set("cpu_user_s", (end.user - begin.user).count());
  result.set("cpu_system_s", (end.system - begin.system).count());
  result.set("objects", static_cast<std::int64_t>(informer->store().size()));
  result.set("events", static_cast<std::int64_t>(latencies.size()));
  result.set("events_per_s", events / wall);
  result.set("cpu_us_per_event", end.cpu_seconds_since(begin) * 1e6 / events);
  report_latencies(latencies, result);
  result.set("vm_hwm", process_status("VmHWM"));
  return result;
}

Result informers_job(const JobOptions& options, std::stop_token stop) {
  const std::int64_t memory_before = process_status("RssAnon");
  const Usage begin = Usage::now();
  Informers informers(options);
  std::vector<std::shared_ptr<informer::SharedIndexInformer>> all;
  for (std::size_t i = 0; i < options.informers; ++i)
    all.push_back(informers.of(fmt::format("ns-{:04}", i)));
  informers.factory().start();
  std::int64_t objects = 0;
  for (const auto& informer : all) {
    require(informer->wait_for_sync(stop), "all informers had synced");
    objects += static_cast<std::int64_t>(informer->store().size());
  }
  const Usage end = Usage::now();
  Result result;
  describe("informers", options, result);
  end.report_since(begin, result);
  result.set("informers", static_cast<std::int64_t>(all.size()));
  result.set("objects", objects);
  report_memory(memory_before, result);
  return result;
}

Result soak_job(const JobOptions& options, std::stop_token stop) {
  Informers informers(options);
  const auto informer = informers.of("");
  std::atomic<std::int64_t> updates{0};
  informer::EventHandler<api::Object> handler;
  handler.on_update = [&](const api::Object&, const api::Object&) {
    updates.fetch_add(1, std::memory_order_relaxed);
  };
  const auto registration = informer->add_handler(std::move(handler));
  informers.factory().start();
  require(registration.wait_for_sync(stop), "the first list was complete");
  const Usage begin = Usage::now();
  const std::int64_t memory_begin = process_status("RssAnon");
  const auto deadline = begin.wall + options.duration;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 ||
        !wait_for_stop(stop, std::min<std::chrono::milliseconds>(left, std::chrono::seconds(10))))
      break;
    const Usage now = Usage::now();
    say("{:.0f} s: {} updates, {:.2f} s of CPU, {} KB\n",
        std::chrono::duration<double>(now.wall - begin.wall).count(), updates.load(),
        now.cpu_seconds_since(begin), process_status("RssAnon") / 1024);
  }
  Result result;
  describe("soak", options, result);
  Usage::now().report_since(begin, result);
  result.set("objects", static_cast<std::int64_t>(informer->store().size()));
  result.set("events", updates.load());
  report_memory(memory_begin, result);
  return result;
}

}  // namespace lookout::cmd::bench
