#include "lookout/rest/config.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "lookout/base/ascii.h"
#include "lookout/base/clock.h"
#include "lookout/base/file_reader.h"
#include "lookout/rest/kubeconfig.h"
#include "lookout/version.h"
#include "rest/exec_plugin.h"

namespace lookout::rest {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Go's strings.TrimSpace for ASCII.
std::string_view trimmed(std::string_view text) { return base::trim(text, " \t\r\n\v\f"); }

/// Whether the text is valid in a header: no line breaks or other control characters.
bool fits_header(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

void check_header(std::string_view text, std::string_view field) {
  if (fits_header(text)) return;
  throw ConfigError(fmt::format("{} contains a line break or another control character", field));
}

/// Servers trim values, so surrounding spaces would turn the value into another user's name.
void check_identity(std::string_view text, std::string_view field) {
  check_header(text, field);
  if (trimmed(text) == text) return;
  throw ConfigError(fmt::format("{} begins or ends with a space", field));
}

void check_file(const std::string& path, std::string_view field) {
  if (path.find('\0') == std::string::npos) return;
  throw ConfigError(fmt::format("{} contains a NUL character", field));
}

bool is_dns_label(std::string_view text) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 63 && alphanumeric(text.front()) &&
         alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return alphanumeric(c) || c == '-'; });
}

/// libcurl's URL parser, which the requests use, too.
class Url {
 public:
  explicit Url(const std::string& text) : handle_(curl_url(), &curl_url_cleanup) {
    if (!handle_) throw std::bad_alloc();
    const CURLUcode code =
        curl_url_set(handle_.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
    if (code != CURLUE_OK) error_ = curl_url_strerror(code);
    if (text.find('\0') != std::string::npos) error_ = "a NUL character";
  }

  /// Empty if the URL is valid.
  const std::string& error() const { return error_; }

  std::string part(CURLUPart part) const {
    char* value = nullptr;
    if (curl_url_get(handle_.get(), part, &value, 0) != CURLUE_OK) return {};
    const std::unique_ptr<char, decltype(&curl_free)> owner(value, &curl_free);
    return value;
  }

 private:
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> handle_;
  std::string error_;
};

bool has_scheme(std::string_view server) { return server.find("://") != std::string_view::npos; }

/// client-go's DefaultServerURL.
std::string normalized_server(const std::string& server, bool tls_by_default) {
  if (server.empty()) throw ConfigError("server: no address of an API server given");
  const bool complete = has_scheme(server);
  const Url url(complete ? server : (tls_by_default ? "https://" : "http://") + server);
  // A URL may contain a password: messages repeat it only if it is known to have none.
  if (!url.error().empty()) {
    throw ConfigError(fmt::format("server: neither a URL nor host:port ({})", url.error()));
  }
  if (!url.part(CURLUPART_USER).empty() || !url.part(CURLUPART_PASSWORD).empty()) {
    throw ConfigError(
        "server: the URL must not contain a user or password; use username and password");
  }
  const std::string scheme = url.part(CURLUPART_SCHEME);
  if (scheme != "https" && scheme != "http") {
    throw ConfigError(
        fmt::format("server: \"{}\" begins with neither https:// nor http://", server));
  }
  const std::string host = url.part(CURLUPART_HOST);
  if (host.empty()) throw ConfigError(fmt::format("server: \"{}\" names no host", server));
  std::string path = url.part(CURLUPART_PATH);
  while (path.ends_with('/')) path.pop_back();
  if (!complete && !path.empty()) {
    throw ConfigError(fmt::format(
        "server: \"{}\" is not host:port; an address with a path begins with https://", server));
  }
  const std::string port = url.part(CURLUPART_PORT);
  return fmt::format("{}://{}{}{}{}", scheme, host, port.empty() ? "" : ":", port, path);
}

void check_proxy(const std::string& proxy) {
  if (proxy.empty()) return;
  const std::string scheme = base::lower_case(proxy.substr(0, proxy.find("://")));
  const bool known = scheme == "http" || scheme == "https" || scheme == "socks5";
  if (!known || !has_scheme(proxy)) {
    throw ConfigError("proxy_url: must begin with http://, https:// or socks5://");
  }
  const Url url(proxy);
  if (!url.error().empty()) {
    throw ConfigError(fmt::format("proxy_url: not a URL ({})", url.error()));
  }
}

void check_pair(bool certificate, bool key) {
  if (certificate && !key) {
    throw ConfigError("a client certificate is set, but no key for it (client_key_data or _file)");
  }
  if (key && !certificate) {
    throw ConfigError(
        "a client key is set, but no certificate for it (client_cert_data or client_cert_file)");
  }
}

void check_impersonation(const Impersonation& as) {
  if (as.user.empty() && !(as.uid.empty() && as.groups.empty() && as.extra.empty())) {
    throw ConfigError("a uid, groups or extra fields to impersonate are set, but no user");
  }
  check_identity(as.user, "the user to act as");
  check_identity(as.uid, "the uid to act as");
  for (const std::string& group : as.groups) check_identity(group, "a group to act as");
  for (const auto& [name, values] : as.extra) {
    for (const std::string& value : values) {
      check_identity(value, fmt::format("the extra field \"{}\" to act with",
                                        fits_header(name) ? name : "..."));
    }
  }
}

/// Header names are tokens (RFC 9110, 5.6.2): all other characters of an extra field's name are
/// percent-encoded.
std::string escape_header_name(std::string_view name) {
  return base::percent_encode(name, "!#$&'*+-.^_`|~");
}

/// The name of the executable, without what a header or a field manager cannot have.
std::string program_name() {
#if defined(__GLIBC__)
  const std::string_view name = program_invocation_short_name;
#elif defined(__APPLE__)
  const std::string_view name = getprogname();
#else
  const std::string_view name;
#endif
  std::string out;
  for (const char c : name) {
    if (c > ' ' && c < 0x7F && c != '/') out += c;
  }
  return out.empty() ? "lookout" : out;
}

std::string system_name() {
#if defined(__linux__)
  return "linux";
#elif defined(__APPLE__)
  return "darwin";
#else
  return "unknown";
#endif
}

/// Go's name of the architecture, which appears in server logs.
std::string machine_name() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#elif defined(__arm__)
  return "arm";
#elif defined(__i386__)
  return "386";
#elif defined(__powerpc64__)
  return "ppc64le";
#elif defined(__riscv)
  return "riscv64";
#elif defined(__s390x__)
  return "s390x";
#else
  return "unknown";
#endif
}

/// Why there is no in-cluster configuration; empty if there can be one.
std::string why_not_in_cluster(const std::string& token_file) {
  for (const char* name : {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}) {
    if (environment(name).empty()) return fmt::format("${} is not set", name);
  }
  const FileContent token = read_small_file(token_file, FileKind::kRegular);
  if (!token) return fmt::format("cannot read {}: {}", token_file, token.error);
  if (trimmed(token.text).empty()) return fmt::format("{} is empty", token_file);
  return {};
}

/// Describes where load() looked for a kubeconfig.
std::string describe_search(const LoadOptions& options, const Kubeconfig& found) {
  std::string out;
  if (!options.file.empty()) {
    out = options.file;
  } else if (const std::string list = environment("KUBECONFIG"); !list.empty()) {
    out = fmt::format("$KUBECONFIG ({})", list);
  } else if (const auto files = Kubeconfig::default_files(); !files.empty()) {
    out = fmt::format("$KUBECONFIG (not set), {}", files.front());
  } else {
    return "$KUBECONFIG (not set), ~/.kube/config ($HOME is not set)";
  }
  if (found.files.empty()) return out + " (does not exist)";
  if (found.contexts.empty()) return out + " (names no context)";
  out += " (no current-context; there are:";
  std::size_t shown = 0;
  for (const auto& [name, context] : found.contexts) {
    if (++shown > 10) return out + " ...)";
    out += " " + name;
  }
  return out + ")";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Impersonation::headers() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (user.empty()) return out;
  out.emplace_back("Impersonate-User", user);
  if (!uid.empty()) out.emplace_back("Impersonate-Uid", uid);
  for (const std::string& group : groups) out.emplace_back("Impersonate-Group", group);
  for (const auto& [name, values] : extra) {
    const std::string header = "Impersonate-Extra-" + escape_header_name(name);
    for (const std::string& value : values) out.emplace_back(header, value);
  }
  return out;
}

std::string default_user_agent() {
  static const std::string kAgent =
      fmt::format("{}/{} ({}/{}) lookout", program_name(), kVersion, system_name(), machine_name());
  return kAgent;
}

Config Config::load(const LoadOptions& options) {
  const Kubeconfig kubeconfig = Kubeconfig::load(options);
  if (kubeconfig.chooses_cluster(options)) return kubeconfig.to_config(options);

  const std::string why = why_not_in_cluster(options.service_account_dir + "/token");
  if (!why.empty()) {
    throw ConfigError(
        fmt::format("no API server to connect to: looked for a kubeconfig in {}, and for the "
                    "service account of a pod ({}). Name a kubeconfig or a context of it, or give "
                    "the server's address",
                    describe_search(options, kubeconfig), why));
  }
  Config config = in_cluster(options.service_account_dir);
  if (!options.ns.empty()) config.default_namespace = options.ns;
  return config.normalized();
}

Config Config::in_cluster(const std::string& service_account_dir) {
  const std::string token_file = service_account_dir + "/token";
  const std::string why = why_not_in_cluster(token_file);
  if (!why.empty()) throw ConfigError(fmt::format("not in a pod of a cluster: {}", why));

  Config config;
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const bool ipv6 = host.find(':') != std::string::npos;
  config.server = fmt::format(fmt::runtime(ipv6 ? "https://[{}]:{}" : "https://{}:{}"), host,
                              environment("KUBERNETES_SERVICE_PORT"));
  config.token_file = token_file;
  const std::string ca_file = service_account_dir + "/ca.crt";
  if (read_small_file(ca_file, FileKind::kRegular)) config.ca_file = ca_file;

  config.default_namespace = environment("POD_NAMESPACE");
  if (config.default_namespace.empty()) {
    config.default_namespace =
        trimmed(read_small_file(service_account_dir + "/namespace", FileKind::kRegular).text);
  }
  return config.normalized();
}

Config Config::from_kubeconfig(const LoadOptions& options) {
  const Kubeconfig kubeconfig = Kubeconfig::load(options);
  if (!kubeconfig.chooses_cluster(options)) {
    throw ConfigError(fmt::format("found no kubeconfig that chooses a cluster: looked in {}",
                                  describe_search(options, kubeconfig)));
  }
  return kubeconfig.to_config(options);
}

Config Config::normalized() const {
  Config out = *this;
  const bool has_ca = !ca_data.empty() || !ca_file.empty();
  out.server = normalized_server(server, uses_tls());
  check_proxy(proxy_url);
  if (insecure && has_ca) {
    throw ConfigError("a certificate authority is set, but insecure would ignore it");
  }
  check_pair(!client_cert_data.empty() || !client_cert_file.empty(),
             !client_key_data.empty() || !client_key_file.empty());
  check_header(server_name, "server_name");
  for (const auto& [path, field] : {std::pair{&ca_file, "ca_file"},
                                    {&client_cert_file, "client_cert_file"},
                                    {&client_key_file, "client_key_file"},
                                    {&token_file, "token_file"}}) {
    check_file(*path, field);
  }

  out.bearer_token = trimmed(bearer_token);
  check_header(out.bearer_token, "bearer_token");
  const bool has_token = !out.bearer_token.empty() || !token_file.empty();
  const bool has_basic = !username.empty() || !password.empty();
  if (has_token && has_basic) {
    throw ConfigError("a token and a username or password are set; a request can carry only one");
  }
  if (has_basic && username.empty()) throw ConfigError("a password is set, but no username");
  if (username.find(':') != std::string::npos) {
    throw ConfigError("username: a colon would end it (RFC 7617)");
  }
  if (exec) detail::check_exec_config(*exec);
  check_impersonation(as);
  check_header(user_agent, "user_agent");
  if (timeout < std::chrono::milliseconds::zero())
    throw ConfigError("timeout: must not be negative");
  if (!(qps >= 0) || burst < 1)
    throw ConfigError("qps must not be negative, and burst must be at least 1");
  // (They are added to times.)
  out.keepalive.probe_after = Clock::limited(keepalive.probe_after);
  out.keepalive.probe_timeout = Clock::limited(keepalive.probe_timeout);
  out.keepalive.stream_silence = Clock::limited(keepalive.stream_silence);
  if (out.default_namespace.empty()) out.default_namespace = "default";
  if (!is_dns_label(out.default_namespace)) {
    throw ConfigError(
        fmt::format("default_namespace: \"{}\" is not a valid namespace name",
                    fits_header(out.default_namespace) ? out.default_namespace : "..."));
  }
  return out;
}

bool Config::uses_tls() const {
  if (has_scheme(server)) {
    return base::equal_ignoring_case(server.substr(0, server.find("://")), "https");
  }
  return insecure || !ca_data.empty() || !ca_file.empty() || !client_cert_data.empty() ||
         !client_cert_file.empty();
}

std::string Config::ca() const {
  if (!ca_data.empty() || ca_file.empty()) return ca_data;
  FileContent file = read_small_file(ca_file, FileKind::kRegular);
  if (!file) throw ConfigError(fmt::format("ca_file: cannot read {}: {}", ca_file, file.error));
  if (trimmed(file.text).empty()) throw ConfigError(fmt::format("ca_file: {} is empty", ca_file));
  return std::move(file.text);
}

}  // namespace lookout::rest
