#include "cmd/bench/result.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>

namespace lookout::cmd::bench {

void Result::set(std::string name, Figure figure) {
  figures_.emplace_back(std::move(name), std::move(figure));
}

double Result::number(std::string_view name) const {
  for (const auto& [key, figure] : figures_) {
    if (key != name) continue;
    if (const auto* whole = std::get_if<std::int64_t>(&figure)) return static_cast<double>(*whole);
    if (const auto* number = std::get_if<double>(&figure)) return *number;
  }
  return 0;
}

std::string Result::json() const {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  for (const auto& [name, figure] : figures_) {
    writer.Key(name.c_str());
    if (const auto* whole = std::get_if<std::int64_t>(&figure)) {
      writer.Int64(*whole);
    } else if (const auto* number = std::get_if<double>(&figure)) {
      writer.Double(*number);
    } else {
      writer.String(std::get<std::string>(figure).c_str());
    }
  }
  writer.EndObject();
  return buffer.GetString();
}

std::string Result::text() const {
  std::size_t width = 22;
  for (const auto& [name, figure] : figures_) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, figure] : figures_) {
    out += fmt::format("{:<{}}  ", name, width);
    if (const auto* number = std::get_if<double>(&figure)) {
      out += fmt::format("{:.6g}\n", *number);
    } else {
      std::visit([&](const auto& value) { out += fmt::format("{}\n", value); }, figure);
    }
  }
  return out;
}

}  // namespace lookout::cmd::bench
