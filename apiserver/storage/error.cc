#include "lookout/apiserver/storage/error.h"

#include <fmt/format.h>

#include "lookout/base/enum_names.h"

namespace lookout::apiserver::storage {
namespace {

using Code = StorageError::Code;

constexpr auto kTexts =
    base::enum_names<Code>({{Code::kKeyNotFound, "key not found"},
                            {Code::kKeyExists, "key exists"},
                            {Code::kResourceVersionConflicts, "resource version conflicts"},
                            {Code::kInvalidObject, "invalid object"},
                            {Code::kUnreachable, "server unreachable"},
                            {Code::kTimeout, "request timeout"},
                            {Code::kCorruptObject, "corrupt object"}});

}  // namespace

// kube-apiserver's text, which clients see in conflicts.
StorageError::StorageError(Code code, std::string key, Revision revision, std::string detail)
    : Error(fmt::format("StorageError: {}, Code: {}, Key: {}, ResourceVersion: {}, "
                        "AdditionalErrorMsg: {}",
                        kTexts.name_of(code), static_cast<int>(code), key, revision,
                        detail.empty() ? "<nil>" : detail)),
      code_(code),
      key_(std::move(key)),
      revision_(revision) {}

}  // namespace lookout::apiserver::storage
