#include "cmd/dry_run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>

namespace lookout::cmd {
namespace {

// "true" is the value of a flag without a value.
const std::set<std::string> kOn = {"server", "true"};
const std::set<std::string> kOff = {"", "none", "false"};

std::string check(const std::string& value) {
  if (kOn.contains(value) || kOff.contains(value)) return {};
  if (value == "client") return "only the server checks objects: --dry-run=server";
  return fmt::format("\"{}\" is neither server nor none", value);
}

}  // namespace

void DryRunFlag::add_to(CLI::App& app, const std::string& description) {
  app.add_flag("--dry-run", value_, description + " (--dry-run=server)")->check(check);
}

bool DryRunFlag::is_set() const { return kOn.contains(value_); }

}  // namespace lookout::cmd
