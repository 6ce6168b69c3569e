// Tables for people.
#pragma once

#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/time.h"
#include "lookout/apiserver/table_printer.h"
#include "lookout/rest/client.h"

namespace lookout::cmd {

using Row = std::vector<std::string>;

/// The columns of a resource and what objects have in them, as kubectl shows them. For objects that
/// are here already; `lookout get` shows what the server's own table says.
class Columns {
 public:
  /// A built-in resource by its own columns, any other by name and age.
  explicit Columns(const api::Resource& resource);
  /// The same, and a custom resource by the columns of its definition, if the client may read that.
  Columns(const api::Resource& resource, const rest::Client& client);

  /// In capitals.
  Row names() const;
  Row values(const api::Object& object, api::Time now) const;

 private:
  apiserver::TablePrinter printer_;
};

/// The names of columns as kubectl writes them: in capitals.
std::string heading(std::string_view column);

/// Rows as text with aligned columns, three blanks between them, and without control characters.
std::string align(std::vector<Row> rows);

/// The same for rows that come one by one, the names of the columns first: columns are as wide as
/// is usual for what they hold, and grow.
class StreamingTable {
 public:
  std::string line(Row row);

 private:
  std::vector<std::size_t> widths_;
};

}  // namespace lookout::cmd
