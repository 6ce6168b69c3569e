#include "apiserver/controllers/quota_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/controllers/watch_events.h"
#include "apiserver/quota/resource_list.h"
#include "apiserver/quota/usage.h"

namespace lookout::apiserver::controllers {
namespace {

using api::Object;
using Steady = std::chrono::steady_clock;

/// The delay that batches deletions.
constexpr std::chrono::milliseconds kDelay{20};
constexpr std::chrono::minutes kResync{5};
/// How often to check whether resources that a quota limits are served.
constexpr std::chrono::seconds kUnserved{1};

std::string ns_of(std::string_view key) { return std::string(key.substr(0, key.find('/'))); }

/// Whether an object that changed may use less than before.
bool may_use_less(const api::Resource& type, const Object& object) {
  if (quota::NamespaceLimits::concerns_updates(type)) return true;
  if (!type.group.empty() || type.plural != "pods") return false;
  const std::string_view phase = object["status"]["phase"].as_string();
  if (phase == "Succeeded" || phase == "Failed" || object["spec"]["activeDeadlineSeconds"].exists())
    return true;
  // The pod may exist only because of a finalizer.
  const api::Value grace = object["metadata"]["deletionGracePeriodSeconds"];
  if (grace.is_number() && grace.as_int() == 0) return true;
  // The pod may have been resized.
  return object["metadata"]["generation"].as_int() > 1;
}

}  // namespace

void QuotaController::begin() {
  context_.spawn("quotas", [this] { return follow_quotas(); });
  context_.spawn("usage of quotas", [this] { return settle(); });
}

void QuotaController::mark(const std::string& ns) {
  const std::lock_guard lock(mutex_);
  if (marked_.insert(ns).second && bell_) bell_->ring();
}

void QuotaController::mark_all() {
  for (const auto& [key, names] : quotas_) mark(ns_of(key));
}

QuotaController::Names QuotaController::names() const {
  Names out;
  for (const auto& [key, names] : quotas_) out.insert(names.begin(), names.end());
  return out;
}

Awaitable<void> QuotaController::follow_quotas() {
  for (;;) {
    const bool ended = co_await watch_quotas();
    if (ended) co_return;
  }
}

Awaitable<bool> QuotaController::watch_quotas() {
  quotas_.clear();
  const auto resource = context_.resources.table()->find("", "v1", "resourcequotas");
  storage::WatchOptions options;
  const auto watch = co_await resource->storage->watch("", true, std::move(options));
  std::vector<storage::Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, Steady::time_point::max());
    for (const storage::Event& event : events) {
      if (fell_behind(event)) co_return false;
      const Object& quota = event.object;
      const std::string key(quota.key());
      if (event.type == api::EventType::kDeleted) {
        quotas_.erase(key);
        continue;
      }
      if (event.type != api::EventType::kAdded && event.type != api::EventType::kModified) continue;
      Names names;
      const quota::ResourceList hard = quota::resource_list(quota["spec"]["hard"]);
      for (const auto& [name, amount] : hard) names.insert(name);
      quotas_.insert_or_assign(key, std::move(names));
      if (event.type == api::EventType::kAdded ||
          hard != quota::resource_list(quota["status"]["hard"]))
        mark(ns_of(key));
    }
  }
  co_return true;
}

resources::ServedResourcePtr QuotaController::find(const std::string& group,
                                                   const std::string& plural) const {
  for (const resources::ServedResourcePtr& resource : limits_.counted_by(names())) {
    if (resource->type.group == group && resource->type.plural == plural) return resource;
  }
  return nullptr;
}

bool QuotaController::watch_counted() {
  const Names all = names();
  const auto counted = limits_.counted_by(all);
  for (const resources::ServedResourcePtr& resource : counted) {
    const api::Resource& type = resource->type;
    if (!watched_.insert(type.plural + "." + type.group).second) continue;
    context_.spawn(
        fmt::format("quota of {}", type.plural),
        [this, group = type.group, plural = type.plural] { return follow_objects(group, plural); });
  }
  return std::all_of(all.begin(), all.end(), [&](const std::string& name) {
    return std::any_of(counted.begin(), counted.end(),
                       [&](const auto& resource) { return quota::concerns(resource->type, name); });
  });
}

Awaitable<void> QuotaController::follow_objects(std::string group, std::string plural) {
  for (;;) {
    resources::ServedResourcePtr resource = find(group, plural);
    if (resource == nullptr) {
      watched_.erase(plural + "." + group);
      throw TaskIsOver();
    }
    const bool ended = co_await watch_objects(std::move(resource));
    if (ended) co_return;
  }
}

Awaitable<bool> QuotaController::watch_objects(resources::ServedResourcePtr resource) {
  storage::WatchOptions options;
  options.start = storage::WatchOptions::Start::kNow;
  const auto watch = co_await resource->storage->watch("", true, std::move(options));
  // The watch has not seen earlier deletions.
  mark_all();
  std::vector<storage::Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, Steady::time_point::max());
    for (const storage::Event& event : events) {
      if (fell_behind(event)) co_return false;
      const bool less =
          event.type == api::EventType::kDeleted ||
          (event.type == api::EventType::kModified && may_use_less(resource->type, event.object));
      if (less) mark(std::string(event.object.ns()));
    }
  }
  co_return true;
}

/// Resets the bell at the end of the task.
class QuotaController::BellRemoval {
 public:
  explicit BellRemoval(QuotaController& controller) : controller_(controller) {}
  ~BellRemoval() {
    const std::lock_guard lock(controller_.mutex_);
    controller_.bell_.reset();
  }
  BellRemoval(const BellRemoval&) = delete;
  BellRemoval& operator=(const BellRemoval&) = delete;

 private:
  QuotaController& controller_;
};

Awaitable<void> QuotaController::settle() {
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  {
    const std::lock_guard lock(mutex_);
    bell_ = bell;
  }
  // The bell must not outlive the executor.
  const BellRemoval removal(*this);
  Steady::time_point resync = Steady::now() + kResync;
  for (;;) {
    const bool complete = watch_counted();
    std::set<std::string> marked;
    {
      const std::lock_guard lock(mutex_);
      marked = std::exchange(marked_, {});
    }
    if (marked.empty()) {
      Steady::time_point until = resync;
      if (!complete) until = std::min(until, Steady::now() + kUnserved);
      co_await bell.wait(until);
      if (Steady::now() >= resync) {
        mark_all();
        resync = Steady::now() + kResync;
      }
      continue;
    }
    for (const std::string& name : marked) {
      // Most namespaces have no quota.
      const auto first = quotas_.lower_bound(name + "/");
      if (first == quotas_.end() || ns_of(first->first) != name) continue;
      std::exception_ptr failure;
      try {
        std::string ns = name;
        co_await limits_.settle(std::move(ns));
      } catch (...) {
        failure = std::current_exception();
      }
      if (!failure) continue;
      for (const std::string& one : marked) mark(one);
      std::rethrow_exception(failure);
    }
    const Steady::time_point later = Steady::now() + kDelay;
    while (Steady::now() < later) co_await bell.wait(later);
  }
}

}  // namespace lookout::apiserver::controllers
