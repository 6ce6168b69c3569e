#include "lookout/apiserver/table_printer.h"

#include <utility>

#include "apiserver/tables/printer.h"

namespace lookout::apiserver {

TablePrinter::TablePrinter(std::shared_ptr<const tables::Printer> printer)
    : printer_(std::move(printer)) {}

TablePrinter TablePrinter::of_builtin(std::string_view group, std::string_view plural) {
  return TablePrinter(tables::Printer::of_builtin(group, plural));
}

TablePrinter TablePrinter::of_custom(api::Value version) {
  return TablePrinter(tables::Printer::of_custom(version));
}

std::vector<std::string> TablePrinter::columns() const {
  std::vector<std::string> out;
  out.reserve(printer_->columns().size());
  for (const tables::Column& column : printer_->columns()) {
    if (column.priority == 0) out.push_back(column.name);
  }
  return out;
}

std::vector<std::string> TablePrinter::cells(const api::Object& object, api::Time now) const {
  tables::Cells cells(now);
  printer_->append(object, cells);
  const auto row = api::Object::parse(R"({"cells":[)" + cells.json() + "]}");
  std::vector<std::string> out;
  out.reserve(printer_->columns().size());
  std::size_t i = 0;
  for (const api::Value cell : row["cells"].elements()) {
    if (i < printer_->columns().size() && printer_->columns()[i].priority == 0)
      out.push_back(cell_text(cell));
    ++i;
  }
  return out;
}

std::string cell_text(api::Value cell) {
  if (cell.is_null()) return {};
  if (!cell.is_string()) return cell.to_json();
  const std::string_view text = cell.as_string();
  const std::size_t end = text.find_first_of("\f\n\r");
  std::string out(text.substr(0, end));
  if (end != std::string_view::npos) out += "...";
  return out;
}

}  // namespace lookout::apiserver
