// Objects as tables that the server renders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/columns.h"
#include "cmd/label_columns.h"
#include "cmd/selection.h"
#include "cmd/sorting.h"
#include "lookout/api/resource.h"
#include "lookout/rest/client.h"

namespace lookout::cmd {

struct TableOptions {
  /// Begins rows with the namespace.
  bool with_namespace = false;
  /// Names objects with their kind: "pod/web".
  bool with_kind = false;
  /// Also shows the columns of wide tables.
  bool wide = false;
  bool no_headers = false;
  /// Of a page of a list; 0: the whole list at once.
  std::int64_t page_size = kPageSize;
  LabelColumns labels = {};
  /// Sorts the rows; may be null.
  const Sorting* sorting = nullptr;
};

/// The table that the server returns for application/json;as=Table, which kubectl uses. If the
/// server returns objects instead, Columns formats them.
class ServerTable {
 public:
  /// An empty `ns` means all namespaces.
  ServerTable(const rest::Client& client, api::Resource resource, std::string ns,
              TableOptions options);

  /// Adds a list, which it requests page by page. If it throws, it adds no rows. Throws what the
  /// client throws, and api::DecodeError if a response is neither a table nor objects.
  void add_list(const std::string& label_selector, const std::string& field_selector);
  /// Adds one object. Throws the same.
  void add_one(const std::string& name);

  /// Without the header.
  const std::vector<Row>& rows() const { return rows_; }
  /// Aligned, with the header unless the options say otherwise. Throws Error if the rows cannot be sorted.
  std::string text() const;

 private:
  std::string path() const;
  void add_pages(const std::string& label_selector, const std::string& field_selector);
  void add_page(const api::Object& answer);
  void add_table(const api::Object& table);
  void add_object(const api::Object& object);
  void add_row(Row cells, std::string_view ns, api::Value object);

  const rest::Client& client_;
  api::Resource resource_;
  std::string ns_;
  TableOptions options_;
  Row names_;
  /// For each of the server's columns: whether this table shows it.
  std::vector<bool> shown_;
  /// The shown column with the names of objects.
  std::size_t name_column_ = 0;
  std::vector<Row> rows_;
  /// One for each row, if rows are sorted.
  std::vector<SortKey> keys_;
  /// For a server without tables; created when needed.
  std::optional<Columns> columns_;
};

}  // namespace lookout::cmd
