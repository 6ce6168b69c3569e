#include "lookout/registry/dubbo/client.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <mutex>
#include <string_view>

#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/enum_names.h"
#include "lookout/base/json_text.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/error.h"
#include "lookout/tools/retry.h"
#include "registry/dubbo/record_set.h"
#include "registry/dubbo/turns.h"
#include "registry/informer_group.h"
#include "registry/pod_state.h"
#include "registry/user_side.h"

namespace lookout::registry::dubbo {

const char* to_string(EventType type) {
  static constexpr auto kNames = base::enum_names<EventType>({{EventType::kCreate, "CREATE"},
                                                              {EventType::kUpdate, "UPDATE"},
                                                              {EventType::kDelete, "DELETE"}});
  return kNames.name_of(type, "?").data();
}

namespace detail {
namespace {

using registry::detail::InformerGroup;
using registry::detail::InformerGroupOptions;
using registry::detail::UserSide;

/// The retries of writes after conflicts.
constexpr retry::Policy kConflicts{20, std::chrono::milliseconds(5), 1.3, 1.0};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) out.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

std::string environment(const PodIdentitySources& sources, const char* name) {
  if (sources.environment) return sources.environment(name).value_or("");
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> namespaces(const ClientOptions& options, const std::string& own) {
  std::vector<std::string> out = options.namespaces;
  if (out.empty()) out = split(environment(options.pod_sources, "DUBBO_NAMESPACE"));
  if (!options.observer || out.empty()) out.push_back(own);
  return registry::detail::each_once(std::move(out));
}

InformerGroupOptions group_options(const ClientOptions& options, const std::string& own) {
  InformerGroupOptions out;
  out.resource = k8s::core::v1::Pod::kResource;
  out.namespaces = namespaces(options, own);
  out.label_selector = fmt::format("{} in ({},{},{})", options.label, options.common_label_value,
                                   options.consumer_label_value, options.provider_label_value);
  const std::string annotation = fmt::format("metadata.annotations['{}']", options.annotation);
  out.projection = api::Projection::keep({annotation});
  out.backoff = options.backoff;
  out.sync_timeout = options.sync_timeout;
  return out;
}

/// A patch of one label or annotation. A uid and a version, unless empty, are preconditions.
std::string metadata_patch(const char* map, const std::string& name, const std::string& value,
                           std::string_view uid, std::string_view version) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  base::write_key(writer, "metadata");
  writer.StartObject();
  base::write_key(writer, map);
  writer.StartObject();
  base::write_text(writer, name, value);
  writer.EndObject();
  if (!uid.empty()) base::write_text(writer, "uid", uid);
  if (!version.empty()) base::write_text(writer, "resourceVersion", version);
  writer.EndObject();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace

class ClientState : public std::enable_shared_from_this<ClientState> {
 public:
  ClientState(rest::Client client, ClientOptions options)
      : client_(std::move(client)),
        options_(std::move(options)),
        pod_(options_.observer ? PodIdentity{}
                               : PodIdentity::find(options_.pod, client_.config().default_namespace,
                                                   options_.pod_sources)),
        pods_(client_.resource(k8s::core::v1::Pod::kResource, pod_.ns)),
        pool_(std::make_shared<informer::HandlerPool>(client_.shared_loop())),
        user_(client_.shared_loop(), options_.handlers),
        group_(
            client_,
            group_options(options_, pod_.ns.empty() ? client_.config().default_namespace : pod_.ns),
            pool_),
        records_(own_key()) {}

  void init() {
    if (!options_.observer && options_.label_pod) label_pod();
    if (options_.role == Role::kConsumer) start();
    if (options_.give_up_after.count() > 0) {
      boost::asio::co_spawn(boost::asio::make_strand(client_.loop().context()),
                            guard(weak_from_this(), options_.give_up_after, done_.get_token()),
                            boost::asio::detached);
    }
  }

  void label_pod() {
    const api::Object pod = read_pod({});
    // An existing label was set on purpose.
    if (pod.labels()[options_.label].exists()) return;
    set_label(options_.label, label_value(), {});
  }

  std::string label_value() const {
    Generation generation = options_.generation;
    if (generation == Generation::kDetect) generation = generation_of_others();
    if (generation == Generation::kDubbo14) return options_.common_label_value;
    return options_.role == Role::kConsumer ? options_.consumer_label_value
                                            : options_.provider_label_value;
  }

  Generation generation_of_others() const {
    const auto there_are = [&](const std::string& values) {
      rest::ListOptions one;
      one.label_selector = fmt::format("{} in ({})", options_.label, values);
      one.limit = 1;
      return !pods_.list(one).items.empty();
    };
    try {
      if (!there_are(options_.common_label_value)) return Generation::kDubbo15;
      const bool both = there_are(
          fmt::format("{},{}", options_.consumer_label_value, options_.provider_label_value));
      return both ? Generation::kDubbo15 : Generation::kDubbo14;
    } catch (const api::StatusError& e) {
      if (!api::is_forbidden(e)) throw;
      return Generation::kDubbo15;
    }
  }

  void create(const std::string& key, const std::string& value, const rest::CallOptions& call) {
    if (key.empty()) throw InvalidArgument("a record needs a key");
    const Record record{key, value};
    const Turn turn = take_turn(call.stop);
    const Written written =
        write([&](std::string_view annotation) { return with_record(annotation, record); }, call);
    records_.written(record, written.pod.resource_version());
  }

  bool remove(const std::string& key, const rest::CallOptions& call) {
    const Turn turn = take_turn(call.stop);
    const Written written =
        write([&](std::string_view annotation) { return without_record(annotation, key); }, call);
    records_.erased(key, written.pod.resource_version());
    return written.changed;
  }

  void set_label(const std::string& label, const std::string& value,
                 const rest::CallOptions& call) {
    check_writer();
    const std::string patch = metadata_patch("labels", label, value, known_uid(), {});
    try {
      learn_uid(pods_.patch(pod_.name, rest::PatchType::kStrategicMerge, patch, {}, {}, call));
    } catch (const api::StatusError& e) {
      if (!registry::detail::pod_was_replaced(e)) throw;
      throw Error(
          fmt::format("pod {} has been replaced by another one of the same name", own_key()));
    }
  }

  void start() {
    group_.start([this] {
      registry::detail::InformerGroupEvents events;
      events.make_handler = [this] { return handler(); };
      events.failed = [weak = weak_from_this()](const WatchFailure& failure, bool repeated) {
        if (const auto self = weak.lock()) self->report(failure, repeated);
      };
      events.synced = [] {};
      return events;
    });
  }

  const RecordSet& synced_records(const WaitOptions& wait) {
    check_valid();
    start();
    // Handlers fill the records.
    group_.wait_for_sync(wait, registry::detail::Synced::kHandlers);
    check_valid();
    return records_;
  }

  std::shared_ptr<EventQueue> watch(const std::string& key, bool prefix, Begin begin) {
    check_valid();
    start();
    auto queue = std::make_shared<EventQueue>(key, prefix, options_.max_pending);
    records_.add(queue, begin);
    return queue;
  }

  void unwatch(const std::shared_ptr<EventQueue>& queue) {
    queue->end(NextOutcome::kStopped);
    records_.remove(queue);
  }

  bool valid() const { return !done_.stop_requested(); }
  std::stop_token done() const { return done_.get_token(); }
  Freshness freshness() const { return group_.freshness()->freshness(); }
  std::vector<WatchFailure> failures() const { return group_.failures(); }
  const PodIdentity& pod() const { return pod_; }
  EventLoop& loop() const { return client_.loop(); }

  void close() {
    user_.calls->forbid();
    done_.request_stop();
    records_.end(NextOutcome::kClosed);
    group_.close();
    if (!client_.loop().running_in_this_thread()) user_.calls->wait();
  }

 private:
  std::string own_key() const { return pod_.ns + "/" + pod_.name; }

  void check_valid() const {
    if (!valid()) throw InvalidArgument("the client is closed");
  }

  void check_writer() const {
    check_valid();
    if (options_.observer) throw InvalidArgument("an observer has no pod to write to");
  }

  std::string known_uid() const {
    const std::lock_guard lock(uid_mutex_);
    return uid_;
  }
  void learn_uid(const api::Object& pod) {
    const std::lock_guard lock(uid_mutex_);
    if (uid_.empty()) uid_ = pod.uid();
  }

  /// Reads this pod. Throws Error if another pod has its name: a StatefulSet replaces its pods, and the
  /// old pod's program may still run.
  api::Object read_pod(const rest::CallOptions& call) {
    api::Object pod = pods_.get(pod_.name, {}, call);
    learn_uid(pod);
    if (const std::string uid = known_uid(); pod.uid() != uid) {
      throw Error(fmt::format(
          "pod {} has been replaced by another one of the same name: its uid is {}, not {}",
          own_key(), pod.uid(), uid));
    }
    return pod;
  }

  struct GiveBack {
    void operator()(Turns* turns) const { turns->give_back(); }
  };
  using Turn = std::unique_ptr<Turns, GiveBack>;

  /// Serializes the writers in this process; the server detects other writers.
  Turn take_turn(const std::stop_token& stop) {
    check_writer();
    if (writing_.take(stop)) return Turn(&writing_);
    throw rest::TransportError(
        rest::TransportError::Kind::kCancelled,
        fmt::format("pod {}: stopped while another record was being written", own_key()));
  }

  struct Written {
    api::Object pod;
    bool changed = false;
  };

  /// Reads the pod's annotation, and writes the result of `change`. Call with a turn.
  template <class Change>
  Written write(const Change& change, const rest::CallOptions& call) {
    check_writer();
    Written out;
    const auto attempt = [&] {
      const api::Object pod = read_pod(call);
      const std::string_view before = pod.annotations()[options_.annotation].as_string();
      const std::string after = change(before);
      const bool same =
          after == before || decode_records(after).records == decode_records(before).records;
      out.changed = !same;
      out.pod = same ? pod
                     : pods_.patch(pod_.name, rest::PatchType::kStrategicMerge,
                                   metadata_patch("annotations", options_.annotation, after,
                                                  pod.uid(), pod.resource_version()),
                                   {}, {}, call);
    };
    retry::on_conflict(attempt, kConflicts, call.stop);
    return out;
  }

  informer::EventHandler<api::Object> handler() {
    const auto weak = weak_from_this();
    informer::EventHandler<api::Object> handler;
    handler.name = "dubbo registry";
    handler.on_add = [weak](const api::Object& pod) {
      if (const auto self = weak.lock()) self->take(pod, nullptr);
    };
    handler.on_update = [weak](const api::Object& before, const api::Object& after) {
      if (const auto self = weak.lock()) self->take(after, &before);
    };
    handler.on_delete = [weak](const api::Object& pod) {
      if (const auto self = weak.lock()) self->records_.gone(pod.key());
    };
    return handler;
  }

  /// Handlers call it one call at a time, with the versions of each pod in order.
  void take(const api::Object& pod, const api::Object* before) {
    const std::string_view text = pod.annotations()[options_.annotation].as_string();
    const bool same =
        before != nullptr && before->annotations()[options_.annotation].as_string() == text;
    const Records decoded = decode_records(text);
    // As in dubbo-go, an unreadable annotation does not remove the pod's records.
    const bool same_pod = before != nullptr && before->uid() == pod.uid();
    if (decoded.readable || !same_pod)
      records_.apply(pod.key(), decoded.records, pod.resource_version());
    if (same || decoded.defects.empty()) return;
    std::vector<Malformed> reports;
    for (const auto& defect : decoded.defects) {
      reports.push_back({std::string(pod.ns()), std::string(pod.name()),
                         fmt::format("annotation {}: {}", options_.annotation, defect),
                         std::string(pod.resource_version()), std::chrono::system_clock::now()});
      if (options_.on_malformed) continue;
      log::warn("registry: {}/{}: {}", reports.back().ns, reports.back().name,
                reports.back().reason);
    }
    if (!options_.on_malformed) return;
    user_.malformed->post(pod.key(), [call = options_.on_malformed, reports] {
      for (const auto& report : reports) call(report);
    });
  }

  void report(const WatchFailure& failure, bool repeated) {
    if (!options_.on_error) {
      return registry::detail::log_failure(api::Resource(k8s::core::v1::Pod::kResource), failure,
                                           repeated);
    }
    user_.failures->post(failure.ns, [call = options_.on_error, failure] { call(failure); });
  }

  static Awaitable<void> guard(std::weak_ptr<ClientState> weak,
                               std::chrono::milliseconds give_up_after, std::stop_token stop) {
    const auto clock = Clock::real();
    const auto pause = std::max(Clock::limited(give_up_after / 8), std::chrono::milliseconds(1));
    for (;;) {
      const bool awake = co_await clock->sleep(pause, stop);
      if (!awake) break;
      const auto self = weak.lock();
      if (!self) co_return;
      // A provider that has read nothing yet does not listen to the server.
      if (self->group_.informers().empty()) continue;
      const Freshness now = self->freshness();
      if (now.live || std::chrono::system_clock::now() - now.since < give_up_after) continue;
      log::warn("registry: no contact with the API server for {} ms: closing the client",
                give_up_after.count());
      self->close();
      co_return;
    }
  }

  const rest::Client client_;
  const ClientOptions options_;
  const PodIdentity pod_;
  const rest::ResourceClient pods_;
  const std::shared_ptr<informer::HandlerPool> pool_;  // for handlers that never block
  const UserSide user_;
  InformerGroup group_;
  RecordSet records_;
  std::stop_source done_;
  Turns writing_;
  mutable std::mutex uid_mutex_;
  std::string uid_ = pod_.uid;  // empty until known; guarded by uid_mutex_
};

}  // namespace detail

// -------------------------------------------------------------------------------- EventWatcher

EventWatcher::EventWatcher(std::shared_ptr<detail::ClientState> client,
                           std::shared_ptr<detail::EventQueue> queue)
    : client_(std::move(client)), queue_(std::move(queue)) {}
EventWatcher::~EventWatcher() { stop(); }

EventWatcher& EventWatcher::operator=(EventWatcher&& other) noexcept {
  if (this != &other) {
    stop();
    client_ = std::move(other.client_);
    queue_ = std::move(other.queue_);
  }
  return *this;
}

NextEvent EventWatcher::next(std::stop_token stop, Deadline deadline) {
  if (client_->loop().running_in_this_thread()) {
    throw InvalidArgument("next() would block the event loop: use co_await async_next()");
  }
  return queue_->wait(std::move(stop), deadline);
}

Awaitable<NextEvent> EventWatcher::async_next(std::stop_token stop, Deadline deadline) {
  return detail::EventQueue::async_wait(queue_, std::move(stop), deadline);
}

std::size_t EventWatcher::pending() const { return queue_->pending(); }

void EventWatcher::stop() {
  if (client_) client_->unwatch(queue_);
}

// -------------------------------------------------------------------------------------- Client

Client::Client(rest::Client client, ClientOptions options)
    : state_(std::make_shared<detail::ClientState>(std::move(client), std::move(options))) {
  state_->init();
}
Client::~Client() { state_->close(); }

void Client::create(const std::string& key, const std::string& value, rest::CallOptions call) {
  state_->create(key, value, call);
}
bool Client::remove(const std::string& key, rest::CallOptions call) {
  return state_->remove(key, call);
}
void Client::set_label(const std::string& label, const std::string& value, rest::CallOptions call) {
  state_->set_label(label, value, call);
}

std::vector<Record> Client::get_children(const std::string& prefix, const WaitOptions& wait) {
  return state_->synced_records(wait).with_prefix(prefix);
}
std::optional<std::string> Client::get(const std::string& key, const WaitOptions& wait) {
  return state_->synced_records(wait).get(key);
}

EventWatcher Client::watch(const std::string& key, Begin begin) {
  return {state_, state_->watch(key, false, begin)};
}
EventWatcher Client::watch_with_prefix(const std::string& prefix, Begin begin) {
  return {state_, state_->watch(prefix, true, begin)};
}

bool Client::valid() const { return state_->valid(); }
std::stop_token Client::done() const { return state_->done(); }
void Client::close() { state_->close(); }
Freshness Client::freshness() const { return state_->freshness(); }
std::vector<WatchFailure> Client::failures() const { return state_->failures(); }
const PodIdentity& Client::pod() const { return state_->pod(); }

bool validate_client(std::shared_ptr<Client>& client,
                     const std::function<std::shared_ptr<Client>()>& make) {
  if (client && client->valid()) return false;
  client = make();
  return true;
}

}  // namespace lookout::registry::dubbo
