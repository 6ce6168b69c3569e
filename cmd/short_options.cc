#include "cmd/short_options.h"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string_view>

namespace lookout::cmd {
namespace {

/// An option of the command or of one of its parents.
const CLI::Option* find_option(const CLI::App* command, const std::string& name) {
  for (; command != nullptr; command = command->get_parent()) {
    if (const CLI::Option* const found = command->get_option_no_throw(name)) return found;
  }
  return nullptr;
}

/// Null if there is none of this name.
const CLI::App* find_subcommand(const CLI::App& command, const std::string& name) {
  const auto found =
      command.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_min() > 0;
}

/// Rewrites "-n=shop" and "-An=shop". Returns whether the next argument is a value.
bool rewrite_short(const CLI::App* command, std::string& argument) {
  for (std::size_t i = 1; i < argument.size(); ++i) {
    const CLI::Option* const option = find_option(command, std::string("-") + argument[i]);
    if (option == nullptr) return false;
    const bool has_value = i + 2 < argument.size() && argument[i + 1] == '=';
    if (has_value && i == 1 && !option->get_lnames().empty()) {
      argument = "--" + option->get_lnames().front() + argument.substr(2);
      return false;
    }
    if (takes_value(option)) {
      // CLI11 takes the rest, unchanged, as the value.
      if (has_value) argument.erase(i + 1, 1);
      return i + 1 == argument.size();
    }
  }
  return false;
}

/// True if the next argument is the value of this option. `command` is the one that has the option.
bool has_separate_value(const CLI::App* command, std::string argument) {
  if (argument.starts_with("--"))
    return argument.find('=') == std::string::npos && takes_value(find_option(command, argument));
  return rewrite_short(command, argument);
}

bool is_namespace_option(std::string_view argument) {
  return argument == "--namespace" || argument.starts_with("--namespace=") ||
         (argument.starts_with("-n") && !argument.starts_with("--"));
}

}  // namespace

std::vector<std::string> with_namespace_behind_command(const CLI::App& app,
                                                       std::vector<std::string> arguments) {
  std::vector<std::string> moved;
  std::vector<std::string> out;
  const CLI::App* command = &app;
  std::size_t behind = 0;
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (*at == "--") {
      out.insert(out.end(), at, arguments.end());
      break;
    }
    if (!at->starts_with('-')) {
      out.push_back(*at);
      if (const CLI::App* const chosen = find_subcommand(*command, *at)) {
        command = chosen;
        behind = out.size();
      }
      continue;
    }
    const bool moves = command == &app && is_namespace_option(*at);
    const bool has_value =
        moves ? *at == "-n" || *at == "--namespace" : has_separate_value(command, *at);
    std::vector<std::string>& to = moves ? moved : out;
    to.push_back(*at);
    if (has_value && at + 1 != arguments.end()) to.push_back(*++at);
  }
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(behind), moved.begin(), moved.end());
  return out;
}

std::vector<std::string> with_long_options(const CLI::App& app,
                                           std::vector<std::string> arguments) {
  const CLI::App* command = &app;
  bool is_value = false;
  for (std::string& argument : arguments) {
    if (is_value) {
      is_value = false;
    } else if (argument == "--") {
      break;
    } else if (argument.starts_with("--")) {
      is_value =
          argument.find('=') == std::string::npos && takes_value(find_option(command, argument));
    } else if (argument.starts_with('-')) {
      is_value = rewrite_short(command, argument);
    } else if (const CLI::App* const chosen = find_subcommand(*command, argument)) {
      command = chosen;
    }
  }
  return arguments;
}

}  // namespace lookout::cmd
