#include "lookout/apiserver/storage/predicate.h"

#include <algorithm>

namespace lookout::apiserver::storage {

bool Predicate::matches(const api::Object& object) const {
  if (!labels.matches(object)) return false;
  std::string scratch;
  return std::all_of(fields.begin(), fields.end(), [&](const FieldRequirement& requirement) {
    return (requirement.read(object, scratch) == requirement.value) == requirement.equal;
  });
}

}  // namespace lookout::apiserver::storage
