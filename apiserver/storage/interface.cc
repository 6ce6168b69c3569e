#include "lookout/apiserver/storage/interface.h"

#include <fmt/format.h>

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

Awaitable<void> Backend::check() { co_await current_revision(); }

}  // namespace lookout::apiserver::storage
