#include "lookout/tools/watch/wait_for.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/fields.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/rest/config.h"
#include "lookout/rest/error.h"
#include "lookout/tools/cache/detail/repeated_error.h"
#include "lookout/tools/watch/retry_watcher.h"
#include "tools/watch/deadline.h"

namespace lookout::watch {
namespace {

using detail::Deadline;

/// The pause between attempts to read the state.
constexpr std::chrono::seconds kPause{1};

bool passes(const std::exception& e) {
  return rest::is_transient(e) || api::is_too_many_requests(e) || api::is_internal_error(e) ||
         api::is_service_unavailable(e) || api::is_server_timeout(e) || api::is_timeout(e);
}

/// The object may exist in an unknown state.
class Undecodable : public api::DecodeError {
 public:
  explicit Undecodable(const std::string& name)
      : DecodeError("the list omits items that cannot be decoded, which may include " + name) {}
};

/// A list failed without an answer of the server: a credential plugin failed, or a proxy answered.
bool was_not_answered(const std::exception& e) {
  if (dynamic_cast<const Undecodable*>(&e) != nullptr) return false;
  return dynamic_cast<const rest::ConfigError*>(&e) != nullptr ||
         dynamic_cast<const api::DecodeError*>(&e) != nullptr;
}

bool must_list_anew(const std::exception& e) {
  return api::is_gone(e) || api::is_resource_expired(e);
}

/// True if the page has skipped an item that may be the object.
bool may_lack(const rest::ListMeta& page, const std::string& name) {
  const std::string namespaced = "/" + name;
  return page.malformed_items > page.malformed_keys.size() ||
         std::ranges::any_of(page.malformed_keys, [&](const std::string& key) {
           return key == name || key.ends_with(namespaced);
         });
}

Awaitable<std::pair<api::Object, std::string>> read(cache::ListerWatcher& source,
                                                    const std::string& name, std::stop_token stop) {
  api::Object found;
  rest::ListOptions page;
  rest::ListMeta meta;
  bool unknown = false;
  const cache::ListerWatcher::OnItem on_item = [&](api::Object object) {
    if (object.name() == name) found = std::move(object);
  };
  do {
    page.continue_token = meta.continue_token;
    meta = co_await source.list(on_item, page, stop);
    unknown = unknown || may_lack(meta, name);
  } while (!meta.continue_token.empty());
  if (!found && unknown) throw Undecodable(name);
  co_return std::pair(std::move(found), std::move(meta.resource_version));
}

/// Watches the object until the condition holds or the watch ends.
Awaitable<std::optional<api::Object>> follow(RetryWatcher& watcher, const std::string& name,
                                             const ObjectCondition& condition) {
  std::vector<api::WatchEvent> events;
  for (;;) {
    const bool more = co_await watcher.next(events);
    if (!more) break;
    for (auto& event : events) {
      if (event.type == api::EventType::kError) {
        auto status = api::Status::from(event.object);
        if (!status) throw Error("a watch ended with an error that is not a Status");
        throw api::StatusError(std::move(*status));
      }
      if (event.object.name() != name) continue;
      api::Object state;
      if (event.type != api::EventType::kDeleted) state = std::move(event.object);
      if (condition(state)) co_return state;
    }
  }
  co_return std::nullopt;
}

/// The last known state of the object, for the message of a timeout.
struct LastState {
  std::optional<bool> exists = {};
  std::string error = {};

  std::string describe(const std::string& name) const {
    if (!error.empty()) return fmt::format("the state of {} is unknown: {}", name, error);
    if (!exists) return fmt::format("the server has not answered yet for {}", name);
    if (!*exists) return fmt::format("{} does not exist", name);
    return fmt::format("{} exists, and does not meet it", name);
  }
};

/// status.loadBalancer.ingress has entries, each with an address.
bool has_addresses(const api::Object& object) {
  bool any = false;
  for (const api::Value& entry : object["status"]["loadBalancer"]["ingress"].elements()) {
    if (entry["ip"].as_string().empty() && entry["hostname"].as_string().empty()) return false;
    any = true;
  }
  return any;
}

}  // namespace

Awaitable<api::Object> async_wait_for(std::shared_ptr<cache::ListerWatcher> source,
                                      std::string name, ObjectCondition condition,
                                      WaitOptions options) {
  const Deadline deadline(co_await boost::asio::this_coro::executor, options);
  RetryWatcherOptions retrying;
  retrying.clock = deadline.clock();
  cache::RepeatedError logged(deadline.clock());
  bool gave_up = false;  // the condition threw an exception
  LastState last;
  const ObjectCondition holds = [&](const api::Object& object) {
    last = {static_cast<bool>(object), {}};
    gave_up = true;
    const bool out = condition(object);
    gave_up = false;
    return out;
  };
  for (;;) {
    bool pause = false;
    bool listing = true;
    try {
      auto [object, version] = co_await read(*source, name, deadline.token());
      listing = false;
      if (holds(object)) co_return object;
      RetryWatcher watcher(source, version, deadline.token(), retrying);
      auto state = co_await follow(watcher, name, holds);
      if (state) co_return std::move(*state);
    } catch (const std::exception& e) {
      if (gave_up) throw;
      if (deadline.over() && rest::is_cancelled(e)) throw deadline.error(last.describe(name));
      const bool unanswered = listing && was_not_answered(e);
      if (!unanswered && !must_list_anew(e) && !passes(e)) throw;
      pause = true;
      last.error = e.what();
      if (unanswered && !deadline.over() && !logged.repeats(e))
        log::warn("waiting for {}: {}", name, e.what());
    }
    if (deadline.over()) throw deadline.error(last.describe(name));
    if (pause) {
      const bool slept = co_await deadline.clock()->sleep(kPause, deadline.token());
      if (!slept) throw deadline.error(last.describe(name));
    }
  }
}

Awaitable<api::Object> async_wait_for(const rest::ResourceClient& client, std::string_view name,
                                      ObjectCondition condition, WaitOptions options) {
  cache::ListWatchOptions one;
  one.field_selector = "metadata.name=" + api::fields::escape_value(name);
  return async_wait_for(std::make_shared<cache::ListWatch>(client, std::move(one)),
                        std::string(name), std::move(condition), std::move(options));
}

api::Object wait_for(const rest::ResourceClient& client, std::string_view name,
                     ObjectCondition condition, WaitOptions options) {
  return client.loop().run(async_wait_for(client, name, std::move(condition), std::move(options)));
}

ObjectCondition is_deleted(std::string_view uid) {
  return [uid = std::string(uid)](const api::Object& object) {
    return !object || object.uid() != uid;
  };
}

ObjectCondition exists() {
  return [](const api::Object& object) { return static_cast<bool>(object); };
}

ObjectCondition has_condition(std::string_view type, std::string_view status,
                              std::string_view reason) {
  return [type = std::string(type), status = std::string(status),
          reason = std::string(reason)](const api::Object& object) {
    if (!object) return false;
    for (const api::Value& one : object["status"]["conditions"].elements()) {
      if (one["type"].as_string() != type) continue;
      return one["status"].as_string() == status &&
             (reason.empty() || one["reason"].as_string() == reason);
    }
    return false;
  };
}

ObjectCondition is_pod_running() {
  return [](const api::Object& object) {
    return object && object["status"]["phase"].as_string() == "Running";
  };
}
ObjectCondition is_pod_ready() { return has_condition("Ready"); }
ObjectCondition is_crd_established() { return has_condition("Established"); }
ObjectCondition is_job_completed() { return has_condition("Complete"); }
ObjectCondition is_deployment_completed() {
  return [available = has_condition("Progressing", "True", "NewReplicaSetAvailable")](
             const api::Object& object) {
    return available(object) && object["status"]["observedGeneration"].as_int() >=
                                    object["metadata"]["generation"].as_int();
  };
}

ObjectCondition is_service_load_balancer_provisioned() {
  return [](const api::Object& object) {
    if (!object) return false;
    return object["spec"]["type"].as_string() != "LoadBalancer" || has_addresses(object);
  };
}
ObjectCondition is_ingress_provisioned() {
  return [](const api::Object& object) { return object && has_addresses(object); };
}

ObjectCondition all_of(ObjectCondition a, ObjectCondition b) {
  return [one = std::move(a), other = std::move(b)](const api::Object& object) {
    return one(object) && other(object);
  };
}
ObjectCondition any_of(ObjectCondition a, ObjectCondition b) {
  return [one = std::move(a), other = std::move(b)](const api::Object& object) {
    return one(object) || other(object);
  };
}
ObjectCondition negated(ObjectCondition condition) {
  return [one = std::move(condition)](const api::Object& object) { return !one(object); };
}

}  // namespace lookout::watch
