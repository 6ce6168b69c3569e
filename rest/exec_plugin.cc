#include "rest/exec_plugin.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>

#include "lookout/base/base64.h"
#include "lookout/base/json_text.h"
#include "rest/child_process.h"
#include "rest/key_pair.h"

extern char** environ;

namespace lookout::rest::detail {
namespace {

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";
constexpr std::string_view kV1beta1 = "client.authentication.k8s.io/v1beta1";
constexpr std::string_view kInfoVariable = "KUBERNETES_EXEC_INFO";

using base::write_text;
using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

void write_text_if_any(JsonWriter& out, std::string_view key, std::string_view value) {
  if (!value.empty()) write_text(out, key, value);
}

void write_if_true(JsonWriter& out, const char* key, bool value) {
  if (!value) return;
  out.Key(key);
  out.Bool(true);
}

void write_cluster(JsonWriter& out, const Config& config) {
  out.StartObject();
  write_text(out, "server", config.server);
  write_text_if_any(out, "tls-server-name", config.server_name);
  write_if_true(out, "insecure-skip-tls-verify", config.insecure);
  write_text_if_any(out, "certificate-authority-data", encode_base64(config.ca()));
  write_text_if_any(out, "proxy-url", config.proxy_url);
  write_if_true(out, "disable-compression", config.disable_compression);
  const std::string& own = config.exec->cluster_config;
  out.Key("config");
  if (own.empty()) {
    out.Null();
  } else {
    out.RawValue(own.data(), own.size(), rapidjson::kObjectType);
  }
  out.EndObject();
}

/// Whether the plugin may read from the terminal. Throws if it must and cannot.
bool decide_interactive(const ExecConfig& exec) {
  if (exec.interactive_mode == "Never") return false;
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  if (exec.interactive_mode == "Always") {
    if (!terminal) throw ConfigError("it must ask the user, but standard input is not a terminal");
    if (exec.stdin_unavailable) {
      throw ConfigError("it must ask the user, but this program reads standard input itself");
    }
  }
  return terminal && !exec.stdin_unavailable;
}

/// This process's environment with the plugin's variables. Later values replace earlier ones.
std::vector<std::string> environment_for(const ExecConfig& exec, const std::string& info) {
  std::map<std::string, std::string, std::less<>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.insert_or_assign(std::string(text.substr(0, equals)),
                               std::string(text.substr(equals + 1)));
  }
  for (const ExecEnvVar& variable : exec.env) {
    variables.insert_or_assign(variable.name, variable.value);
  }
  variables.insert_or_assign(std::string(kInfoVariable), info);
  std::vector<std::string> out;
  out.reserve(variables.size());
  for (const auto& [name, value] : variables) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

/// The hint comes from a file and goes to a terminal: removes control characters.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool space = byte >= 0x09 && byte <= 0x0d;
    out += (byte < 0x20 && !space) || byte == 0x7f ? '?' : c;
  }
  return out;
}

std::string describe_failure(const ExecConfig& exec, const ExecLimits& limits,
                             const ChildResult& result) {
  using End = ChildResult::End;
  switch (result.end) {
    case End::kNotStarted: {
      if (result.status == E2BIG) {
        return "the arguments and the cluster's information for it are too long";
      }
      if (result.status == kRelativeToHere) {
        return "$PATH finds it relative to the current directory only; give its whole path";
      }
      if (result.status != ENOENT) return std::generic_category().message(result.status);
      std::string out =
          "the program does not exist. The configuration asks for a credential plugin that is not "
          "installed "
          "(https://kubernetes.io/docs/reference/access-authn-authz/authentication/"
          "#client-go-credential-plugins)";
      if (!exec.install_hint.empty()) out += "\n\n" + printable(exec.install_hint);
      return out;
    }
    case End::kTimedOut:
      return fmt::format("not done within {} seconds",
                         std::chrono::duration_cast<std::chrono::seconds>(limits.timeout).count());
    case End::kTooMuchOutput:
      return fmt::format("printed more than {} bytes", limits.max_output);
    case End::kSignalled:
      return fmt::format("was ended by signal {}", result.status);
    case End::kExited:
      return fmt::format("failed with exit code {}", result.status);
    case End::kStopped:
      break;
  }
  return "stopped";
}

std::string text_member(const rapidjson::Value& object, const char* name) {
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd() || member->value.IsNull()) return {};
  if (!member->value.IsString()) throw ConfigError(fmt::format("{} is not a string", name));
  return {member->value.GetString(), member->value.GetStringLength()};
}

bool has_control_characters(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

void check_exec_config(const ExecConfig& exec) {
  if (exec.command.empty()) throw ConfigError("exec: command is missing");
  if (exec.api_version != kV1 && exec.api_version != kV1beta1) {
    throw ConfigError(fmt::format("exec: apiVersion must be {} or {}{}", kV1, kV1beta1,
                                  exec.api_version.empty() ? "; it is missing" : ""));
  }
  if (exec.interactive_mode != "Never" && exec.interactive_mode != "IfAvailable" &&
      exec.interactive_mode != "Always") {
    throw ConfigError(fmt::format("exec: interactiveMode must be Never, IfAvailable or Always{}",
                                  exec.interactive_mode.empty() ? "; it is missing" : ""));
  }
  const auto check_nul = [](std::string_view text, std::string_view field) {
    if (text.find('\0') != std::string_view::npos) {
      throw ConfigError(fmt::format("exec: {} contains a NUL character", field));
    }
  };
  check_nul(exec.command, "command");
  for (const std::string& argument : exec.args) check_nul(argument, "args");
  for (const ExecEnvVar& variable : exec.env) {
    if (variable.name.empty() || variable.name.find('=') != std::string::npos) {
      throw ConfigError("exec: env has a variable without a name, or with \"=\" in it");
    }
    check_nul(variable.name, "env");
    check_nul(variable.value, "env");
  }
}

std::string exec_info(const Config& config, bool interactive) {
  rapidjson::StringBuffer buffer;
  JsonWriter out(buffer);
  out.StartObject();
  write_text(out, "kind", "ExecCredential");
  write_text(out, "apiVersion", config.exec->api_version);
  out.Key("spec");
  out.StartObject();
  if (config.exec->provide_cluster_info) {
    out.Key("cluster");
    write_cluster(out, config);
  }
  out.Key("interactive");
  out.Bool(interactive);
  out.EndObject();
  out.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

ExecCredential parse_exec_credential(const std::string& json, std::string_view api_version) {
  // Iterative: the plugin's output may be nested deeply.
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      json.data(), json.size());
  if (document.HasParseError()) {
    throw ConfigError(fmt::format("printed no JSON (at byte {}: {})", document.GetErrorOffset(),
                                  rapidjson::GetParseError_En(document.GetParseError())));
  }
  if (!document.IsObject() || text_member(document, "kind") != "ExecCredential") {
    throw ConfigError("printed no ExecCredential");
  }
  if (text_member(document, "apiVersion") != api_version) {
    throw ConfigError(
        fmt::format("is configured for {}, but printed another apiVersion", api_version));
  }
  const auto status = document.FindMember("status");
  if (status == document.MemberEnd() || !status->value.IsObject()) {
    throw ConfigError("printed an ExecCredential without a status");
  }

  ExecCredential out;
  out.token = text_member(status->value, "token");
  out.certificate = text_member(status->value, "clientCertificateData");
  out.key = text_member(status->value, "clientKeyData");
  if (out.token.empty() && out.certificate.empty() && out.key.empty()) {
    throw ConfigError("printed neither a token nor a certificate");
  }
  if (out.certificate.empty() != out.key.empty()) {
    throw ConfigError("printed a certificate or a key, but not both");
  }
  if (has_control_characters(out.token)) {
    throw ConfigError("printed a token with a line break or another control character in it");
  }
  if (!out.certificate.empty()) {
    if (const std::string why = key_pair_error(out.certificate, out.key); !why.empty()) {
      throw ConfigError("printed a certificate that cannot be used: " + why);
    }
  }
  if (const std::string text = text_member(status->value, "expirationTimestamp"); !text.empty()) {
    out.expires = api::parse_time(text);
    if (!out.expires) throw ConfigError("printed an expirationTimestamp that is not a timestamp");
  }
  return out;
}

std::optional<ExecCredential> run_exec_plugin(const Config& config, const ExecLimits& limits,
                                              std::stop_token stop) {
  const ExecConfig& exec = *config.exec;
  try {
    const bool interactive = decide_interactive(exec);
    ChildRequest request;
    request.command.push_back(exec.command);
    request.command.insert(request.command.end(), exec.args.begin(), exec.args.end());
    request.environment = environment_for(exec, exec_info(config, interactive));
    request.share_stdin = interactive;
    request.max_output = limits.max_output;
    request.timeout = limits.timeout;
    request.stop = std::move(stop);
    const ChildResult result = run_child(request);
    if (result.end == ChildResult::End::kStopped) return std::nullopt;
    if (result.end != ChildResult::End::kExited || result.status != 0) {
      throw ConfigError(describe_failure(exec, limits, result));
    }
    return parse_exec_credential(result.output, exec.api_version);
  } catch (const ConfigError& e) {
    throw ConfigError(fmt::format("credential plugin {}: {}", printable(exec.command), e.what()));
  }
}

}  // namespace lookout::rest::detail
