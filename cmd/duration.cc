#include "cmd/duration.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <utility>

#include "lookout/base/sleep.h"

namespace lookout::cmd {

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::chrono::milliseconds length;
  };
  static constexpr Unit kUnits[] = {{"ms", std::chrono::milliseconds(1)},
                                    {"s", std::chrono::seconds(1)},
                                    {"m", std::chrono::minutes(1)},
                                    {"h", std::chrono::hours(1)}};
  if (text == "0") return std::chrono::milliseconds(0);
  std::chrono::milliseconds total{0};
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::string_view name =
        text.substr(0, std::min(text.find_first_of("0123456789"), text.size()));
    const Unit* unit = nullptr;
    for (const auto& candidate : kUnits) {
      if (candidate.name == name) unit = &candidate;
    }
    if (unit == nullptr) return std::nullopt;
    total += number * unit->length;
    text.remove_prefix(name.size());
  }
  return total;
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::milliseconds& value,
                          const std::string& description) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed)
              throw CLI::ValidationError(name,
                                         "\"" + text + "\" is not a duration such as 30s or 10m");
            value = *parsed;
          },
          description)
      ->type_name("TIME");
}

void wait_for_stop(std::stop_token stop) {
  wait_for_stop(std::move(stop), std::chrono::hours(24 * 365 * 10));
}

bool wait_for_stop(std::stop_token stop, std::chrono::milliseconds time) {
  return sleep_for(time, std::move(stop));
}

}  // namespace lookout::cmd
