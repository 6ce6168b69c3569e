#include "lookout/controller/create_or_update.h"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/enum_names.h"
#include "lookout/tools/retry.h"

namespace lookout::controller {
namespace {

using detail::PlannedWrite;
using detail::PlanWrite;
using detail::WriteMode;

constexpr std::string_view kNothing = "{}";

PlannedWrite planned(const PlanWrite& plan, const api::Object& existing, const std::string& name) {
  PlannedWrite out = plan(existing);
  if (out.object.name() != name || (existing && out.object.ns() != existing.ns())) {
    throw InvalidArgument(fmt::format("{}: an object cannot change its name or namespace", name));
  }
  return out;
}

/// A planned request.
struct WriteRequest {
  enum class Verb { kCreate, kUpdate, kPatch, kPatchStatus } verb;
  const PlannedWrite& wanted;
};

std::vector<WriteRequest> requests_for(const api::Object& existing, const PlannedWrite& wanted,
                                       WriteMode mode) {
  std::vector<WriteRequest> out;
  if (!existing) {
    out.push_back({WriteRequest::Verb::kCreate, wanted});
  } else if (mode == WriteMode::kUpdate) {
    if (wanted.changed) out.push_back({WriteRequest::Verb::kUpdate, wanted});
  } else if (wanted.patch != kNothing) {
    out.push_back({WriteRequest::Verb::kPatch, wanted});
  }
  if (mode == WriteMode::kPatch && wanted.status_patch != kNothing)
    out.push_back({WriteRequest::Verb::kPatchStatus, wanted});
  return out;
}

Written written_by(const std::vector<WriteRequest>& requests) {
  if (requests.empty()) return Written::kUnchanged;
  if (requests.front().verb == WriteRequest::Verb::kCreate) return Written::kCreated;
  if (requests.front().verb == WriteRequest::Verb::kPatchStatus) return Written::kUpdatedStatusOnly;
  return requests.size() > 1 ? Written::kUpdatedStatus : Written::kUpdated;
}

Awaitable<api::Object> send(const rest::ResourceClient& client, const std::string& name,
                            const WriteRequest& request, const rest::CallOptions& call) {
  const rest::CreateOptions create;
  const rest::PatchOptions patch;
  const std::string no_subresource;
  const std::string status = "status";
  switch (request.verb) {
    case WriteRequest::Verb::kCreate:
      return client.async_create(request.wanted.object, create, call);
    case WriteRequest::Verb::kUpdate:
      return client.async_update(request.wanted.object, create, no_subresource, call);
    case WriteRequest::Verb::kPatch:
      return client.async_patch(name, rest::PatchType::kMerge, request.wanted.patch, patch,
                                no_subresource, call);
    case WriteRequest::Verb::kPatchStatus:
      break;
  }
  return client.async_patch(name, rest::PatchType::kMerge, request.wanted.status_patch, patch,
                            status, call);
}

/// True if another writer has changed or created the object.
bool was_faster(const std::exception& e) {
  return api::is_conflict(e) || api::is_already_exists(e);
}

}  // namespace

std::string_view to_string(Written written) {
  static constexpr auto kNames =
      base::enum_names<Written>({{Written::kUnchanged, "unchanged"},
                                 {Written::kCreated, "created"},
                                 {Written::kUpdated, "updated"},
                                 {Written::kUpdatedStatus, "updatedStatus"},
                                 {Written::kUpdatedStatusOnly, "updatedStatusOnly"}});
  return kNames.name_of(written);
}

namespace detail {

Awaitable<WriteResult<api::Object>> async_write(rest::ResourceClient client, std::string name,
                                                PlanWrite plan, rest::CallOptions call,
                                                WriteMode mode) {
  WriteResult<api::Object> out;
  const auto attempt = [&]() -> Awaitable<void> {
    const rest::GetOptions get;
    const api::Object existing = co_await client.async_find(name, get, call);
    const PlannedWrite wanted = planned(plan, existing, name);
    const auto requests = requests_for(existing, wanted, mode);
    out = {existing, written_by(requests)};
    for (const WriteRequest& request : requests)
      out.object = co_await send(client, name, request, call);
  };
  co_await retry::async_on_error(retry::kDefaultRetry, was_faster, attempt, call.stop);
  co_return out;
}

/// Like async_write(), with the plan on the calling thread.
WriteResult<api::Object> write(const rest::ResourceClient& client, const std::string& name,
                               const PlanWrite& plan, const rest::CallOptions& call,
                               WriteMode mode) {
  WriteResult<api::Object> out;
  const auto attempt = [&] {
    const api::Object existing = client.find(name, {}, call);
    const PlannedWrite wanted = planned(plan, existing, name);
    const auto requests = requests_for(existing, wanted, mode);
    out = {existing, written_by(requests)};
    for (const WriteRequest& request : requests)
      out.object = client.loop().run(send(client, name, request, call));
  };
  retry::on_error(retry::kDefaultRetry, was_faster, attempt, call.stop);
  return out;
}

}  // namespace detail

}  // namespace lookout::controller
