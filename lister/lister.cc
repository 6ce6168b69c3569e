#include "lookout/lister/lister.h"

#include "lookout/api/error.h"
#include "lookout/api/status.h"

namespace lookout::lister::detail {

void require_index(const std::shared_ptr<const cache::Indexer>& store, const std::string& name) {
  if (!store) throw InvalidArgument("the index is empty: assign one to it first");
  if (!store->snapshot().has_index(name))
    throw InvalidArgument("there is no index \"" + name + "\"");
}

void throw_not_found(const api::Resource& resource, std::string_view name) {
  throw api::StatusError::not_found(resource.group, resource.plural, name);
}

Candidates candidates(const cache::Snapshot& now, const api::labels::Selector& selector,
                      std::string_view ns) {
  using api::labels::Operator;
  if (selector.requirements().empty() && !selector.empty()) return {};  // it matches nothing
  // A store need not have the index by namespace.
  const bool indexed = !ns.empty() && now.has_index(cache::kNamespaceIndex);
  Candidates out{indexed ? now.by_index(cache::kNamespaceIndex, ns) : now.objects(),
                 !ns.empty() && !indexed};
  for (const auto& requirement : selector.requirements()) {
    const bool one_value =
        requirement.values().size() == 1 &&
        (requirement.op() == Operator::kEquals || requirement.op() == Operator::kDoubleEquals ||
         requirement.op() == Operator::kIn);
    if (!one_value) continue;
    const std::string index = cache::label_index_name(requirement.key());
    if (!now.has_index(index)) continue;
    cache::ObjectRange objects = now.by_index(index, requirement.values().front());
    if (objects.size() < out.objects.size()) out = {std::move(objects), !ns.empty()};
  }
  return out;
}

}  // namespace lookout::lister::detail
