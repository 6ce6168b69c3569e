// Tables for people.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/time.h"

namespace lookout::cmd {

using Row = std::vector<std::string>;

/// The columns of a kind: what kubectl shows of the common ones, name and age of the others.
Row column_names(const api::Resource& resource);
Row column_values(const api::Resource& resource, const api::Object& object, api::Time now);

/// "3m20s", or "<unknown>".
std::string age_of(const api::Object& object, api::Time now);

/// Rows as text with aligned columns, three blanks between them.
std::string align(const std::vector<Row>& rows);

/// The same for rows that come one by one, the names of the columns first: columns are as wide as
/// is usual for what they hold, and grow.
class StreamingTable {
 public:
  std::string line(const Row& row);

 private:
  std::vector<std::size_t> widths_;
};

}  // namespace lookout::cmd
