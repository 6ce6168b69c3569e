// Tables on a terminal.
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

/// The columns of a resource and the cells of objects, as in kubectl. For objects that the program
/// already has; `lookout get` requests the server's table.
class Columns {
 public:
  /// A built-in resource with its columns; others with name and age.
  explicit Columns(const api::Resource& resource);
  /// Also a custom resource with the columns of its definition, if the client may read it.
  Columns(const api::Resource& resource, const rest::Client& client);

  /// In capitals.
  Row names() const;
  Row values(const api::Object& object, api::Time now) const;

 private:
  apiserver::TablePrinter printer_;
};

/// The names of columns as kubectl writes them: in capitals.
std::string heading(std::string_view column);

/// Rows as text with aligned columns, separated by three blanks, without control characters.
std::string align(std::vector<Row> rows);

/// The same for rows that arrive one by one, starting with the column names: columns have their usual
/// width, and grow if necessary.
class StreamingTable {
 public:
  std::string line(Row row);

 private:
  std::vector<std::size_t> widths_;
};

}  // namespace lookout::cmd
