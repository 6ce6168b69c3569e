// Credential plugins: programs that print an ExecCredential (client.authentication.k8s.io).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "lookout/api/time.h"
#include "lookout/rest/config.h"

namespace lookout::rest::detail {

/// Throws ConfigError if the plugin cannot be run: no command, an unknown apiVersion ...
void check_exec_config(const ExecConfig& exec);

/// A plugin's output.
struct ExecCredential {
  std::string token;
  std::string certificate;  // PEM, with its key
  std::string key;
  std::optional<api::Time> expires;
};

struct ExecLimits {
  std::chrono::milliseconds timeout{0};
  std::size_t max_output = 0;
};

/// Runs the plugin of `config`, which must have one, and waits for it. Returns nullopt if a stop was
/// requested. Throws ConfigError on any failure.
std::optional<ExecCredential> run_exec_plugin(const Config& config, const ExecLimits& limits,
                                              std::stop_token stop);

/// The value of KUBERNETES_EXEC_INFO for the plugin.
std::string exec_info(const Config& config, bool interactive);

/// Parses a plugin's output. Throws ConfigError, whose text repeats nothing of the output.
ExecCredential parse_exec_credential(const std::string& json, std::string_view api_version);

}  // namespace lookout::rest::detail
