// The rows of built-in kinds.
#pragma once

#include <string_view>

#include "apiserver/tables/cells.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::tables {

/// Adds the cells for the columns of the resource (see columns_of). The object is in its stored form.
using AppendRow = void (*)(const api::Object& object, Cells& cells);

struct ResourceRow {
  std::string_view group;
  std::string_view plural;
  AppendRow append;
};

/// Null for resources without their own columns.
AppendRow find_row(std::string_view group, std::string_view plural);

/// Each file of rows handles some of the kinds.
AppendRow find_workload_row(std::string_view group, std::string_view plural);
AppendRow find_network_row(std::string_view group, std::string_view plural);
AppendRow find_storage_row(std::string_view group, std::string_view plural);
AppendRow find_cluster_row(std::string_view group, std::string_view plural);

template <class Rows>
AppendRow find_in(const Rows& rows, std::string_view group, std::string_view plural) {
  for (const ResourceRow& row : rows) {
    if (row.group == group && row.plural == plural) return row.append;
  }
  return nullptr;
}

/// When the object was created.
inline api::Value created(const api::Object& object) {
  return object["metadata"]["creationTimestamp"];
}

}  // namespace lookout::apiserver::tables
