#include "apiserver/tables/columns.h"

#include <cstddef>

namespace lookout::apiserver::tables {
namespace {

struct ColumnFacts {
  const char* name;
  const char* type;
  const char* format;
  const char* description;
  int priority;
};

struct ResourceFacts {
  std::string_view group;
  std::string_view plural;
  std::size_t begin;
  std::size_t end;
};

// kube-apiserver's texts, because clients show them.
#include "apiserver/tables/columns.inc"

Column column(const ColumnFacts& facts) {
  return {facts.name, facts.type, facts.format, facts.description, facts.priority};
}

}  // namespace

Column name_column() { return column(kNameColumn); }
Column age_column() { return column(kAgeColumn); }
Column created_column() { return {"Created At", "date", "", kAgeColumn.description}; }

std::optional<std::vector<Column>> columns_of(std::string_view group, std::string_view plural) {
  for (const ResourceFacts& resource : kResources) {
    if (resource.group != group || resource.plural != plural) continue;
    std::vector<Column> out;
    out.reserve(resource.end - resource.begin);
    for (std::size_t i = resource.begin; i < resource.end; ++i) out.push_back(column(kColumns[i]));
    return out;
  }
  return std::nullopt;
}

}  // namespace lookout::apiserver::tables
