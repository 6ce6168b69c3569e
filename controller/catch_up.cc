#include "controller/catch_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iterator>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "controller/waiting.h"
#include "controller/write_barrier.h"
#include "lookout/api/status.h"
#include "lookout/base/backoff.h"
#include "lookout/base/detail/log.h"
#include "lookout/rest/client.h"

namespace lookout::controller::detail {
namespace {

constexpr std::int64_t kPage = 500;
/// The time limit of a request, after which it is sent again.
constexpr Clock::Duration kLongestRequest = std::chrono::seconds(30);
/// How often to check late caches.
constexpr std::chrono::milliseconds kLookEvery{50};

/// Adds the writes of others that a cache does not show yet; they are awaited like own writes. Throws
/// what the list throws.
Awaitable<void> compare(const rest::Client& client, std::shared_ptr<const CachedKind> kind,
                        const CachedKind::Part& part, std::vector<Write>& missing,
                        rest::CallOptions call) {
  const cache::Snapshot before = part.informer->store().snapshot();
  std::unordered_set<std::string> listed;
  bool some_unknown = false;
  std::vector<Write> writes;
  const rest::ResourceClient::OnItem on_item = [&](const api::Object& object) {
    listed.insert(object.key());
    Write write{kind, Request(object.ns(), object.name()), std::string(object.uid()),
                std::string(object.resource_version())};
    if (!seen(write)) writes.push_back(std::move(write));
  };
  rest::DecodeOptions decode;
  decode.metadata_only = true;
  rest::ListOptions options;
  options.label_selector = *part.scope.label_selector;
  options.field_selector = *part.scope.field_selector;
  options.limit = kPage;
  const rest::ResourceClient objects = client.resource(kind->resource, part.listed);
  do {
    const rest::ListMeta page = co_await objects.async_list_each(on_item, options, decode, call);
    options.continue_token = page.continue_token;
    // An undecodable object exists: do not wait for its deletion.
    listed.insert(page.malformed_keys.begin(), page.malformed_keys.end());
    some_unknown = some_unknown || page.malformed_keys.size() < page.malformed_items;
  } while (!options.continue_token.empty());
  for (const api::Object& object : before) {
    if (some_unknown || listed.contains(object.key())) continue;
    Write gone{kind, Request(object.ns(), object.name()), std::string(object.uid()), ""};
    if (!seen(gone)) writes.push_back(std::move(gone));
  }
  std::move(writes.begin(), writes.end(), std::back_inserter(missing));
}

std::set<std::string> names(const std::vector<Write>& writes) {
  std::set<std::string> out;
  for (const Write& write : writes) out.insert(write.kind->name());
  return out;
}

}  // namespace

Awaitable<void> catch_up(std::shared_ptr<const CacheCore> cache,
                         std::vector<std::shared_ptr<const CachedKind>> kinds,
                         std::chrono::milliseconds timeout, std::stop_token stop) {
  if (timeout <= std::chrono::milliseconds::zero()) co_return;
  const auto clock = cache->clock();
  const auto begun = clock->now();
  const auto deadline = end_of(timeout, begun);
  Backoff backoff(cache->options().backoff, clock);
  std::vector<Write> missing;
  std::set<std::string> late;
  for (const auto& kind : kinds) {
    for (const auto& part : kind->parts) {
      for (bool compared = false; !compared && !stop.stop_requested();) {
        if (kind->retired || !part.informer->has_synced()) break;
        const auto left = deadline - clock->now();
        if (left <= Clock::Duration::zero()) {
          late.insert(part.informer->name() + kind->of_cluster());
          break;
        }
        try {
          rest::CallOptions call;
          call.stop = stop;
          call.timeout =
              std::chrono::ceil<std::chrono::milliseconds>(std::min(left, kLongestRequest));
          co_await compare(cache->client(), kind, part, missing, call);
          compared = true;
        } catch (const std::exception& e) {
          // The role does not allow lists, so further attempts would fail, too.
          compared = api::is_forbidden(e);
          if (!stop.stop_requested())
            log::warn("manager: cannot compare the cache of {}{} with the server, {}: {}",
                      part.informer->name(), kind->of_cluster(),
                      compared ? "so it may be out of date" : "will retry", e.what());
        }
        if (!compared) co_await clock->sleep(std::min(left, backoff.next()), stop);
      }
    }
  }
  std::erase_if(missing, seen);
  if (!missing.empty() && !stop.stop_requested())
    log::info("manager: waits until the caches have caught up: {}",
              fmt::join(names(missing), ", "));
  while (!missing.empty() && !stop.stop_requested() && clock->now() < deadline) {
    co_await clock->sleep(kLookEvery, stop);
    std::erase_if(missing, seen);
  }
  if (stop.stop_requested()) co_return;
  late.merge(names(missing));
  const double took = std::chrono::duration<double>(clock->now() - begun).count();
  if (late.empty()) {
    log::info("manager: caches caught up in {:.3f} s", took);
  } else {
    log::warn("manager: after {:.3f} s, these caches do not show all earlier writes yet: {}", took,
              fmt::join(late, ", "));
  }
}

}  // namespace lookout::controller::detail
