#include "lookout/apiserver/storage/interface.h"

#include <fmt/format.h>

#include <cstddef>

namespace lookout::apiserver::storage {

void Preconditions::check(const std::string& whole_key, const api::Object& object) const {
  const auto demand = [&](std::string_view what, const std::optional<std::string>& wanted,
                          std::string_view present) {
    if (!wanted || *wanted == present) return;
    throw StorageError(StorageError::Code::kInvalidObject, whole_key, 0,
                       fmt::format("Precondition failed: {0} in precondition: {1}, {0} in object "
                                   "meta: {2}",
                                   what, *wanted, present));
  };
  demand("UID", uid, object.uid());
  demand("ResourceVersion", resource_version, object.resource_version());
}

Awaitable<std::vector<api::Object>> read_all(ListResult list) {
  constexpr std::size_t kAtOnce = 100;
  std::vector<api::Object> all;
  std::vector<api::Object> some;
  for (;;) {
    const bool more = co_await list.objects->next(some, kAtOnce);
    all.insert(all.end(), some.begin(), some.end());
    if (!more) co_return all;
  }
}

Awaitable<void> Backend::check() { co_await current_revision(); }

}  // namespace lookout::apiserver::storage
