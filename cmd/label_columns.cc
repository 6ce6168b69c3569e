#include "cmd/label_columns.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <utility>

namespace lookout::cmd {

void LabelColumns::add_to(CLI::App& app) {
  app.add_option("-L,--label-columns", keys,
                 "Columns with these labels, separated by commas: app,tier")
      ->type_name("LABELS")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--show-labels", all, "A column with all labels");
}

void LabelColumns::add_names(Row& row) const {
  for (const std::string& key : keys) row.push_back(heading(key.substr(key.rfind('/') + 1)));
  if (all) row.emplace_back("LABELS");
}

void LabelColumns::add_values(Row& row, api::Value labels) const {
  for (const std::string& key : keys) row.emplace_back(labels[key].as_string());
  if (!all) return;
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : labels.members()) sorted.emplace(name, value.as_string());
  std::string text;
  for (const auto& [key, value] : sorted)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  row.push_back(text.empty() ? "<none>" : std::move(text));
}

}  // namespace lookout::cmd
