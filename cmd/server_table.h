// Objects as tables that the server renders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/columns.h"
#include "cmd/connection.h"

namespace lookout::cmd {

/// The page size of lists, like kubectl's --chunk-size.
inline constexpr std::int64_t kPageSize = 500;

/// The table that the server returns for application/json;as=Table, which kubectl uses. If the
/// server returns objects instead, Columns formats them.
class ServerTable {
 public:
  /// Requests one object, or a list page by page. Throws what the client throws, and
  /// api::DecodeError if the response is neither a table nor objects.
  ServerTable(const rest::Client& client, const api::Resource& resource, const std::string& ns,
              const SelectionFlags& selection);

  /// Without the header.
  const std::vector<Row>& rows() const { return rows_; }
  /// Aligned, with the header.
  std::string text() const;

 private:
  void add_page(const api::Object& answer);
  void add_table(const api::Object& table);
  void add_object(const api::Object& object);

  const rest::Client& client_;
  const api::Resource& resource_;
  bool with_namespace_;
  Row names_;
  /// For each of the server's columns: whether narrow tables show it.
  std::vector<bool> shown_;
  std::vector<Row> rows_;
  /// For a server without tables; created when needed.
  std::optional<Columns> columns_;
};

}  // namespace lookout::cmd
