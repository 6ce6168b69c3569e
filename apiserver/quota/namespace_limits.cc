#include "apiserver/quota/namespace_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/quota/limit_ranger.h"
#include "apiserver/quota/usage.h"
#include "apiserver/storage/revision.h"
#include "apiserver/storage/unknown_outcome.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::quota {
namespace {

using api::Quantity;
using resources::ServedResourcePtr;
using storage::StorageError;

/// The maximum number of attempts after concurrent changes of a quota.
constexpr int kAttempts = 20;
constexpr std::size_t kBatch = 500;

json::Value json_of(const ResourceList& list, json::Allocator& allocator) {
  json::Value out(rapidjson::kObjectType);
  for (const auto& [name, amount] : list) json::set(out, name, amount.to_string(), allocator);
  return out;
}

/// "cpu=1,memory=2Gi" for these names.
std::string text_of(const ResourceList& list, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    const auto found = list.find(name);
    if (found == list.end()) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, found->second.to_string());
  }
  return out;
}

StatusError refused(const api::Resource& type, const Object& object, const std::string& why) {
  return StatusError::forbidden(type.group, type.plural, object.name(), why);
}

/// Throws if `delta` exceeds the remaining quota.
void check_fits(const api::Resource& type, const Object& object, const Object& quota,
                const ResourceList& delta) {
  const ResourceList hard = resource_list(quota["status"]["hard"]);
  const ResourceList used = resource_list(quota["status"]["used"]);
  std::vector<std::string> exceeded;
  for (const auto& [name, amount] : delta) {
    const auto limit = hard.find(name);
    if (limit == hard.end()) continue;
    const auto before = used.find(name);
    const Quantity after = before == used.end() ? amount : before->second + amount;
    if (after > limit->second) exceeded.push_back(name);
  }
  if (exceeded.empty()) return;
  throw refused(
      type, object,
      fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", quota.name(),
                  text_of(delta, exceeded), text_of(used, exceeded), text_of(hard, exceeded)));
}

/// The quota with `delta` added to or subtracted from its usage.
Object with_delta(const Object& quota, const ResourceList& delta, bool taken) {
  ResourceList used = resource_list(quota["status"]["used"]);
  for (const auto& [name, amount] : delta) {
    const Quantity before = used[name];
    used[name] = taken ? before + amount : std::max(Quantity(), before - amount);
  }
  json::Document document = quota.to_document();
  auto& allocator = document.GetAllocator();
  json::set(json::child(document, "status", allocator), "used", json_of(used, allocator),
            allocator);
  return Object::from(document);
}

Object with_status(const Object& quota, const ResourceList& hard, const ResourceList& used) {
  json::Document document = quota.to_document();
  auto& allocator = document.GetAllocator();
  json::Value status(rapidjson::kObjectType);
  if (!hard.empty()) json::set(status, "hard", json_of(hard, allocator), allocator);
  if (!used.empty()) json::set(status, "used", json_of(used, allocator), allocator);
  json::set(document, "status", std::move(status), allocator);
  return Object::from(document);
}

/// The increase of each usage; without usages that have not increased.
ResourceList increase(const ResourceList& now, const ResourceList& before) {
  ResourceList out;
  for (const auto& [name, amount] : now) {
    const auto old = before.find(name);
    const Quantity more = old == before.end() ? amount : amount - old->second;
    if (more > Quantity()) out.emplace(name, more);
  }
  return out;
}

}  // namespace

NamespaceLimits::Charge::Charge(Charge&& other) noexcept
    : limits_(std::exchange(other.limits_, nullptr)),
      ns_(std::move(other.ns_)),
      taken_(std::move(other.taken_)),
      pass_(std::move(other.pass_)) {}

NamespaceLimits::Charge::~Charge() {
  if (limits_ == nullptr || taken_.empty()) return;
  pass_.leave();
  if (limits_->stale_) limits_->stale_(ns_);
}

void NamespaceLimits::Charge::keep() {
  taken_.clear();
  pass_.leave();
}

NamespaceLimits::NamespaceLimits(resources::ResourceRegistry& resources)
    : resources_(resources),
      quotas_(resources.table()->find("", "v1", "resourcequotas")),
      ranges_(resources.table()->find("", "v1", "limitranges")) {}

bool NamespaceLimits::concerns_updates(const api::Resource& type) {
  return is_core(type, "services") || is_core(type, "persistentvolumeclaims");
}

void NamespaceLimits::note(const resources::ServedResource& resource, const Object& object) {
  if (resource.storage != quotas_->storage && resource.storage != ranges_->storage) return;
  const storage::Revision revision = storage::revision_of(object);
  storage::Revision known = written_;
  while (known < revision && !written_.compare_exchange_weak(known, revision)) {
  }
}

Awaitable<std::vector<Object>> NamespaceLimits::list(ServedResourcePtr resource, std::string ns,
                                                     bool latest) {
  storage::ListOptions options;
  if (!latest) {
    options.match = storage::VersionMatch::kNotOlderThan;
    options.revision = written_;
  }
  storage::ListResult result = co_await resource->storage->list(ns + "/", true, std::move(options));
  std::vector<Object> out;
  std::vector<Object> some;
  for (;;) {
    const bool more = co_await result.objects->next(some, kBatch);
    out.insert(out.end(), some.begin(), some.end());
    if (!more) break;
  }
  co_return out;
}

Awaitable<Object> NamespaceLimits::complete_pod(std::string ns, Object pod) {
  ServedResourcePtr ranges = ranges_;
  const std::vector<Object> all = co_await list(std::move(ranges), std::move(ns), false);
  co_return with_default_resources(all, pod);
}

Awaitable<void> NamespaceLimits::check(ServedResourcePtr resource, std::string ns, Object object,
                                       Object old) {
  const api::Resource& type = resource->type;
  if (!is_core(type, "pods") && !is_core(type, "persistentvolumeclaims")) co_return;
  ServedResourcePtr ranges = ranges_;
  const std::vector<Object> all = co_await list(std::move(ranges), std::move(ns), false);
  check_limit_ranges(all, type, object, old);
}

Awaitable<NamespaceLimits::Charge> NamespaceLimits::charge(ServedResourcePtr resource,
                                                           std::string ns, Object object,
                                                           Object old, bool dry_run) {
  const api::Resource& type = resource->type;
  Charge charge;
  if (!is_counted(type)) co_return charge;
  // Enter before any check, so that a new quota counts this object or includes its charge.
  std::string where = ns;
  if (!dry_run) charge.pass_ = co_await gate_.enter(std::move(where));
  ServedResourcePtr quotas = quotas_;
  std::string same = ns;
  const std::vector<Object> all = co_await list(std::move(quotas), std::move(same), false);
  std::vector<Object> concerned;
  for (const Object& quota : all) {
    ResourceList hard = resource_list(quota["status"]["hard"]);
    std::erase_if(hard, [&](const auto& one) { return !concerns(type, one.first); });
    if (hard.empty() || !is_in_scope(type, quota, object)) continue;
    const std::string missing = missing_resources(type, object, hard);
    if (!missing.empty())
      throw refused(type, object, fmt::format("failed quota: {}: {}", quota.name(), missing));
    const ResourceList used = resource_list(quota["status"]["used"]);
    const bool known = std::all_of(hard.begin(), hard.end(),
                                   [&](const auto& one) { return used.contains(one.first); });
    if (!known) {
      std::vector<std::string_view> names;
      for (const auto& [name, amount] : hard) names.push_back(name);
      throw refused(type, object,
                    fmt::format("status unknown for quota: {}, resources: {}", quota.name(),
                                fmt::join(names, ",")));
    }
    concerned.push_back(quota);
  }
  if (concerned.empty()) co_return charge;
  const ResourceList whole = usage_of(type, object);
  const ResourceList grown = increase(whole, old ? usage_of(type, old) : ResourceList());
  // A quota that did not count the old object counts all of the new one.
  const auto delta_for = [&](const Object& quota) -> const ResourceList& {
    return old && !is_in_scope(type, quota, old) ? whole : grown;
  };
  std::erase_if(concerned, [&](const Object& quota) { return delta_for(quota).empty(); });
  if (concerned.empty()) co_return charge;
  if (dry_run) {
    for (const Object& quota : concerned) {
      check_fits(type, object, quota,
                 masked(delta_for(quota), resource_list(quota["status"]["hard"])));
    }
    co_return charge;
  }
  charge.limits_ = this;
  charge.ns_ = ns;
  std::exception_ptr refusal;
  bool unknown = false;
  for (const Object& quota : concerned) {
    ResourceList taken;
    storage::Interface::Update update = [&](const Object& present) {
      taken = masked(delta_for(quota), resource_list(present["status"]["hard"]));
      check_fits(type, object, present, taken);
      return taken.empty() ? present : with_delta(present, taken, true);
    };
    try {
      storage::Preconditions none;
      co_await quotas_->storage->guaranteed_update(fmt::format("{}/{}", ns, quota.name()), false,
                                                   std::move(none), std::move(update));
      if (!taken.empty()) charge.taken_.emplace_back(quota.name(), std::move(taken));
    } catch (const StorageError& e) {
      // A deleted quota limits nothing.
      if (e.code() != StorageError::Code::kKeyNotFound) {
        refusal = std::make_exception_ptr(
            StatusError::server_timeout(type.group, type.plural, "create", 2));
      }
      unknown = storage::may_be_written(e);
    } catch (const StatusError& e) {
      refusal = std::current_exception();
      unknown = storage::may_be_written(e);
    }
    if (refusal) break;
  }
  if (!refusal) co_return charge;
  // The write of the last quota may have succeeded.
  if (unknown && stale_) stale_(ns);
  co_await refund(std::move(charge));
  std::rethrow_exception(refusal);
}

Awaitable<void> NamespaceLimits::add_to(std::string ns, std::string quota, ResourceList delta,
                                        bool taken) {
  storage::Interface::Update update = [&](const Object& present) {
    return with_delta(present, delta, taken);
  };
  storage::Preconditions none;
  co_await quotas_->storage->guaranteed_update(fmt::format("{}/{}", ns, quota), false,
                                               std::move(none), std::move(update));
}

Awaitable<void> NamespaceLimits::refund(Charge charge) {
  while (!charge.taken_.empty()) {
    std::string ns = charge.ns_;
    std::string quota = charge.taken_.back().first;
    ResourceList delta = charge.taken_.back().second;
    try {
      co_await add_to(std::move(ns), std::move(quota), std::move(delta), false);
    } catch (const StorageError& e) {
      // The destructor of the charge reports its namespace as stale.
      if (e.code() != StorageError::Code::kKeyNotFound) co_return;
    } catch (const StatusError& e) {
      log::debug("cannot refund quota {}: {}", charge.taken_.back().first, e.what());
      co_return;
    }
    charge.taken_.pop_back();
  }
}

std::vector<ServedResourcePtr> NamespaceLimits::counted_by(
    const std::set<std::string, std::less<>>& names) const {
  std::vector<ServedResourcePtr> out;
  std::set<const storage::Interface*> seen;
  const auto table = resources_.table();
  for (const ServedResourcePtr& resource : table->resources()) {
    if (resource->storage == nullptr || !is_counted(resource->type)) continue;
    const bool counted = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return concerns(resource->type, name);
    });
    if (counted && seen.insert(resource->storage).second) out.push_back(resource);
  }
  return out;
}

Awaitable<std::vector<ResourceList>> NamespaceLimits::count(std::string ns,
                                                            std::vector<Object> quotas) const {
  std::vector<ResourceList> hard;
  std::vector<ResourceList> out(quotas.size());
  std::set<std::string, std::less<>> names;
  for (const Object& quota : quotas) {
    hard.push_back(resource_list(quota["spec"]["hard"]));
    for (const auto& [name, amount] : hard.back()) names.insert(name);
  }
  const std::vector<ServedResourcePtr> counted = counted_by(names);
  for (const ServedResourcePtr& resource : counted) {
    const api::Resource& type = resource->type;
    for (std::size_t i = 0; i < quotas.size(); ++i) {
      for (const auto& [name, amount] : hard[i]) {
        if (concerns(type, name)) out[i].emplace(name, Quantity());
      }
    }
    storage::ListOptions options;
    storage::ListResult result =
        co_await resource->storage->list(ns + "/", true, std::move(options));
    std::vector<Object> some;
    for (bool more = true; more;) {
      more = co_await result.objects->next(some, kBatch);
      for (const Object& object : some) {
        const ResourceList usage = usage_of(type, object);
        for (std::size_t i = 0; i < quotas.size(); ++i) {
          if (is_in_scope(type, quotas[i], object)) add(out[i], masked(usage, hard[i]));
        }
      }
    }
  }
  co_return out;
}

Awaitable<bool> NamespaceLimits::settle_once(std::string ns) {
  ServedResourcePtr resource = quotas_;
  std::string same = ns;
  const std::vector<Object> quotas = co_await list(std::move(resource), std::move(same), true);
  if (quotas.empty()) co_return true;
  std::string there = ns;
  std::vector<Object> counted = quotas;
  const std::vector<ResourceList> used = co_await count(std::move(there), std::move(counted));
  bool settled = true;
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    const Object& quota = quotas[i];
    const ResourceList hard = resource_list(quota["spec"]["hard"]);
    const api::Value status = quota["status"];
    if (resource_list(status["hard"]) == hard && resource_list(status["used"]) == used[i]) continue;
    storage::Preconditions unchanged;
    unchanged.resource_version = std::string(quota.resource_version());
    storage::Interface::Update update = [&](const Object& present) {
      return with_status(present, hard, used[i]);
    };
    try {
      co_await quotas_->storage->guaranteed_update(fmt::format("{}/{}", ns, quota.name()), false,
                                                   std::move(unchanged), std::move(update));
    } catch (const StorageError& e) {
      if (e.code() == StorageError::Code::kKeyNotFound) continue;
      if (e.code() != StorageError::Code::kInvalidObject &&
          e.code() != StorageError::Code::kResourceVersionConflicts)
        throw;
      settled = false;
    }
  }
  co_return settled;
}

Awaitable<void> NamespaceLimits::settle(std::string ns) {
  std::string same = ns;
  const Gate::Pass pass = co_await gate_.enter_alone(std::move(same));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string there = ns;
    const bool settled = co_await settle_once(std::move(there));
    if (settled) co_return;
  }
  if (stale_) stale_(ns);
}

}  // namespace lookout::apiserver::quota
