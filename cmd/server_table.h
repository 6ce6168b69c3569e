// Objects as the server itself would show them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/columns.h"
#include "cmd/connection.h"

namespace lookout::cmd {

/// How many objects a server is asked for at once: kubectl's --chunk-size.
inline constexpr std::int64_t kPageSize = 500;

/// The table that the server answers when it is asked for one (application/json;as=Table), as
/// kubectl does. A server that answers with objects all the same has them shown by Columns.
class ServerTable {
 public:
  /// Asks for one object or a list, page by page. Throws what the client throws, and
  /// api::DecodeError for an answer with something else.
  ServerTable(const rest::Client& client, const api::Resource& resource, const std::string& ns,
              const SelectionFlags& selection);

  /// Without the names of the columns.
  const std::vector<Row>& rows() const { return rows_; }
  /// Aligned, below the names of the columns.
  std::string text() const;

 private:
  void add_page(const api::Object& answer);
  void add_table(const api::Object& table);
  void add_object(const api::Object& object);

  const rest::Client& client_;
  const api::Resource& resource_;
  bool with_namespace_;
  Row names_;
  /// For each column of the server: whether narrow tables show it.
  std::vector<bool> shown_;
  std::vector<Row> rows_;
  /// For a server that makes no tables; made when it is needed.
  std::optional<Columns> columns_;
};

}  // namespace lookout::cmd
