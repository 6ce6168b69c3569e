#include "cmd/custom_columns.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "lookout/api/detail/go_values.h"
#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

/// A value as Go's fmt.Sprint writes it.
std::string go_text_of(api::Value value) {
  const std::string json = value.to_json();
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  return api::detail::print_value(document);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

}  // namespace

api::detail::JsonPath relaxed_path(std::string_view text) {
  std::string_view path = text;
  if (path.starts_with('{') && path.ends_with('}')) path = path.substr(1, path.size() - 2);
  auto out = path.empty() || path.find_first_of("{}") != std::string_view::npos
                 ? std::nullopt
                 : api::detail::JsonPath::parse(path);
  if (!out) throw Error(fmt::format("\"{}\" is not a path such as .metadata.name", text));
  return *std::move(out);
}

CustomColumns CustomColumns::parse(std::string_view spec) {
  if (spec.empty()) throw Error("columns are missing: custom-columns=NAME:.metadata.name");
  CustomColumns out;
  for (std::size_t begin = 0; begin <= spec.size();) {
    const std::size_t end = std::min(spec.find(',', begin), spec.size());
    const std::string_view column = spec.substr(begin, end - begin);
    const std::size_t colon = column.find(':');
    if (colon == std::string_view::npos)
      throw Error(fmt::format("\"{}\" is not a column such as NAME:.metadata.name", column));
    out.add(column.substr(0, colon), column.substr(colon + 1));
    begin = end + 1;
  }
  return out;
}

CustomColumns CustomColumns::parse_file(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error(fmt::format("{} cannot be read", file));
  std::string first;
  std::string second;
  if (!std::getline(in, first) || !std::getline(in, second))
    throw Error(fmt::format("{} needs a line of headers and a line of paths", file));
  const std::vector<std::string> headers = words_of(first);
  const std::vector<std::string> paths = words_of(second);
  if (headers.size() != paths.size()) {
    throw Error(fmt::format("{} has {} headers, but {} paths", file, headers.size(), paths.size()));
  }
  if (headers.empty()) throw Error(fmt::format("{} has no columns", file));
  CustomColumns out;
  for (std::size_t i = 0; i < headers.size(); ++i) out.add(headers[i], paths[i]);
  return out;
}

Row CustomColumns::values(api::Value root) const {
  Row out;
  for (const api::detail::JsonPath& path : paths_) {
    const std::vector<api::Value> found = path.find_in_bounds(root);
    std::string cell = found.empty() ? "<none>" : "";
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i > 0) cell += ',';
      cell += go_text_of(found[i]);
    }
    out.push_back(std::move(cell));
  }
  return out;
}

void CustomColumns::add(std::string_view header, std::string_view path) {
  headers_.emplace_back(header);
  paths_.push_back(relaxed_path(path));
}

}  // namespace lookout::cmd
