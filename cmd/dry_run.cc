#include "cmd/dry_run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace lookout::cmd {
namespace {

// "true" is the value of a flag without a value.
bool is_on(const std::string& value) { return value == "server" || value == "true"; }
bool is_off(const std::string& value) {
  return value.empty() || value == "none" || value == "false";
}

std::string check(const std::string& value) {
  if (is_on(value) || is_off(value)) return {};
  if (value == "client") return "only the server checks objects: --dry-run=server";
  return fmt::format("\"{}\" is neither server nor none", value);
}

}  // namespace

void DryRunFlag::add_to(CLI::App& app, const std::string& description) {
  app.add_flag("--dry-run", value_, description + " (--dry-run=server)")->check(check);
}

bool DryRunFlag::is_set() const { return is_on(value_); }

}  // namespace lookout::cmd
