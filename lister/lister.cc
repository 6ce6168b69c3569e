#include "lookout/lister/lister.h"

#include "lookout/api/status.h"

namespace lookout::lister::detail {

void throw_not_found(const api::Resource& resource, std::string_view name) {
  throw api::StatusError::not_found(resource.group, resource.plural, name);
}

cache::ObjectRange candidates(const cache::Snapshot& now, const api::labels::Selector& selector) {
  using api::labels::Operator;
  if (selector.requirements().empty() && !selector.empty()) return {};  // it matches nothing
  for (const auto& requirement : selector.requirements()) {
    const bool one_value =
        requirement.values().size() == 1 &&
        (requirement.op() == Operator::kEquals || requirement.op() == Operator::kDoubleEquals ||
         requirement.op() == Operator::kIn);
    if (!one_value) continue;
    const std::string index = cache::label_index_name(requirement.key());
    if (now.has_index(index)) return now.by_index(index, requirement.values().front());
  }
  return now.objects();
}

}  // namespace lookout::lister::detail
