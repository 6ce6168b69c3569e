#include "lookout/rest/kubeconfig.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "lookout/base/base64.h"
#include "lookout/base/file_reader.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::rest {
namespace {

constexpr std::string_view kExecExtension = "client.authentication.k8s.io/exec";

/// Quotes a name from a file for a message.
std::string in_quotes(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  std::string out = "\"";
  for (const char c : name.substr(0, kLongest)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return out + (name.size() > kLongest ? "...\"" : "\"");
}

std::string place(const Kubeconfig::Origin& origin) {
  return fmt::format("{}:{}", origin.file.empty() ? "kubeconfig" : origin.file, origin.line);
}

/// A value in a file with its position. Absent values and nulls read as empty values, as in Go.
class Field {
 public:
  Field(const std::string& file, const YamlNode* node, std::string path)
      : file_(file),
        node_(node != nullptr && node->kind == YamlNode::Kind::kNull ? nullptr : node),
        path_(std::move(path)) {}

  bool present() const { return node_ != nullptr; }
  int line() const { return node_ == nullptr ? 0 : node_->line; }
  const YamlNode* node() const { return node_; }

  Field operator[](std::string_view key) const {
    if (node_ == nullptr) return {file_, nullptr, {}};
    expect(YamlNode::Kind::kMap, "is not a map");
    return {file_, node_->find(key),
            path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
  }

  std::string text() const {
    if (node_ == nullptr) return {};
    expect(YamlNode::Kind::kScalar, "is not a string");
    if (node_->text.find('\0') != std::string::npos) fail("contains a NUL character");
    return node_->text;
  }

  std::string required_text() const {
    std::string out = text();
    if (out.empty()) fail("is missing");
    return out;
  }

  bool flag() const {
    if (node_ == nullptr) return false;
    expect(YamlNode::Kind::kScalar, "is neither true nor false");
    if (!node_->quoted && is_yaml_true(node_->text)) return true;
    if (!node_->quoted && is_yaml_false(node_->text)) return false;
    fail("is neither true nor false");
  }

  /// The decoded value of a base64 field.
  std::string data() const {
    const std::string encoded = text();
    std::optional<std::string> out = decode_base64(encoded);
    if (!out) fail("is not base64");
    return std::move(*out);
  }

  template <class Use>
  void for_each_item(Use use) const {
    if (node_ == nullptr) return;
    expect(YamlNode::Kind::kSequence, "is not a list");
    for (std::size_t i = 0; i < node_->items.size(); ++i) {
      use(Field(file_, node_->items[i], fmt::format("{}[{}]", path_, i)));
    }
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for_each_item([&](const Field& item) { out.push_back(item.text()); });
    return out;
  }

  template <class Use>
  void for_each_field(Use use) const {
    if (node_ == nullptr) return;
    expect(YamlNode::Kind::kMap, "is not a map");
    for (std::size_t i = 0; i < node_->fields.size(); ++i) {
      const std::string& key = node_->fields[i].first;
      if (key.find('\0') != std::string::npos) fail("has a name with a NUL character");
      use(key, Field(file_, node_->fields[i].second, fmt::format("{}[{}]", path_, in_quotes(key))));
    }
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw ConfigError(fmt::format("{}: {} {}", place({file_, line()}), path_, why));
  }

 private:
  void expect(YamlNode::Kind kind, std::string_view why) const {
    if (node_->kind != kind) fail(why);
  }

  const std::string& file_;
  const YamlNode* node_;
  std::string path_;
};

ExecConfig read_exec(const Field& exec) {
  ExecConfig out;
  out.command = exec["command"].text();
  out.args = exec["args"].texts();
  exec["env"].for_each_item([&](const Field& variable) {
    out.env.push_back({variable["name"].text(), variable["value"].text()});
  });
  out.api_version = exec["apiVersion"].text();
  out.interactive_mode = exec["interactiveMode"].text();
  // v1beta1 does not require this field.
  if (out.interactive_mode.empty() && out.api_version != "client.authentication.k8s.io/v1") {
    out.interactive_mode = "IfAvailable";
  }
  out.install_hint = exec["installHint"].text();
  out.provide_cluster_info = exec["provideClusterInfo"].flag();
  return out;
}

Kubeconfig::Cluster read_cluster(const Field& cluster) {
  Kubeconfig::Cluster out;
  out.server = cluster["server"].text();
  out.tls_server_name = cluster["tls-server-name"].text();
  out.insecure_skip_tls_verify = cluster["insecure-skip-tls-verify"].flag();
  out.certificate_authority = cluster["certificate-authority"].text();
  out.certificate_authority_data = cluster["certificate-authority-data"].data();
  out.proxy_url = cluster["proxy-url"].text();
  out.disable_compression = cluster["disable-compression"].flag();
  cluster["extensions"].for_each_item([&](const Field& extension) {
    if (extension["name"].text() != kExecExtension) return;
    const Field value = extension["extension"];
    if (value.present()) out.exec_config = to_json(*value.node());
  });
  return out;
}

Kubeconfig::User read_user(const Field& user) {
  Kubeconfig::User out;
  out.client_certificate = user["client-certificate"].text();
  out.client_certificate_data = user["client-certificate-data"].data();
  out.client_key = user["client-key"].text();
  out.client_key_data = user["client-key-data"].data();
  out.token = user["token"].text();
  out.token_file = user["tokenFile"].text();
  out.username = user["username"].text();
  out.password = user["password"].text();
  out.as.user = user["as"].text();
  out.as.uid = user["as-uid"].text();
  out.as.groups = user["as-groups"].texts();
  user["as-user-extra"].for_each_field(
      [&](const std::string& name, const Field& values) { out.as.extra[name] = values.texts(); });
  if (const Field exec = user["exec"]; exec.present()) out.exec = read_exec(exec);
  if (const Field provider = user["auth-provider"]; provider.present()) {
    out.auth_provider = provider["name"].text();
    if (out.auth_provider.empty()) out.auth_provider = "(without a name)";
  }
  return out;
}

Kubeconfig::Context read_context(const Field& context) {
  Kubeconfig::Context out;
  out.cluster = context["cluster"].text();
  out.user = context["user"].text();
  out.ns = context["namespace"].text();
  return out;
}

/// Reads a list of {name: N, <what>: {...}}.
template <class Entry, class Read>
void read_entries(const Field& list, std::string_view what, const std::string& file,
                  std::map<std::string, Entry, std::less<>>& entries, Read read) {
  list.for_each_item([&](const Field& item) {
    if (!item.present()) return;
    const std::string name = item["name"].text();
    Entry entry = read(item[what]);
    entry.origin = {file, item.line()};
    if (!entries.emplace(name, std::move(entry)).second) {
      item.fail(fmt::format("has the name {}, which occurs above already", in_quotes(name)));
    }
  });
}

void resolve_path(std::string& path, const std::filesystem::path& base) {
  if (!path.empty() && path.front() != '/') path = (base / path).lexically_normal().string();
}

template <class Entries>
std::string known_names(const Entries& entries) {
  if (entries.empty()) return "there are none";
  std::string out = "there are:";
  std::size_t shown = 0;
  for (const auto& [name, entry] : entries) {
    if (++shown > 10) return out + " ...";
    out += " " + in_quotes(name);
  }
  return out;
}

void check_readable(const std::string& path, std::string_view field, std::string_view owner) {
  if (path.empty()) return;
  const FileContent file = read_small_file(path, FileKind::kRegular);
  if (file) return;
  throw ConfigError(fmt::format("{}: {}: cannot read {}: {}", owner, field, path, file.error));
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t end = list.find(':');
    const std::string_view item = list.substr(0, end);
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
    if (item.empty() || std::find(out.begin(), out.end(), item) != out.end()) continue;
    out.emplace_back(item);
  }
  return out;
}

bool is_missing(const FileContent& file) {
  return file.error_code == ENOENT || file.error_code == ENOTDIR;
}

Kubeconfig parse_content(const FileContent& content, const std::string& file) {
  if (!content) throw ConfigError(fmt::format("cannot read {}: {}", file, content.error));
  return Kubeconfig::parse(content.text, file);
}

/// Copies the cluster's part to `config`; Config::normalized() checks it.
void use_cluster(const Kubeconfig::Cluster& cluster, Config& config) {
  config.server = cluster.server;
  config.server_name = cluster.tls_server_name;
  config.insecure = cluster.insecure_skip_tls_verify;
  config.ca_data = cluster.certificate_authority_data;
  if (config.ca_data.empty()) config.ca_file = cluster.certificate_authority;
  config.proxy_url = cluster.proxy_url;
  config.disable_compression = cluster.disable_compression;
}

void use_user(const Kubeconfig::User& user, Config& config) {
  config.client_cert_data = user.client_certificate_data;
  if (config.client_cert_data.empty()) config.client_cert_file = user.client_certificate;
  // clientcmd ignores a key without a certificate.
  if (!config.client_cert_data.empty() || !config.client_cert_file.empty()) {
    config.client_key_data = user.client_key_data;
    if (config.client_key_data.empty()) config.client_key_file = user.client_key;
  }
  config.bearer_token = user.token;
  config.token_file = user.token_file;
  config.username = user.username;
  config.password = user.password;
  config.exec = user.exec;
}

void forget_user(Config& config) {
  config.client_cert_data.clear();
  config.client_cert_file.clear();
  config.client_key_data.clear();
  config.client_key_file.clear();
  config.bearer_token.clear();
  config.token_file.clear();
  config.username.clear();
  config.password.clear();
  config.exec.reset();
}

}  // namespace

Kubeconfig Kubeconfig::parse(std::string_view text, const std::string& file) {
  Kubeconfig out;
  if (!file.empty()) out.files.push_back(file);
  try {
    const YamlTree tree(text);
    const Field root(file, &tree.root(), "");
    if (root.present() && root.node()->kind != YamlNode::Kind::kMap) {
      throw ConfigError(fmt::format("{}: this is not a kubeconfig", place({file, root.line()})));
    }
    const Field kind = root["kind"];
    const Field version = root["apiVersion"];
    if (kind.present() && kind.text() != "Config") kind.fail("is not \"Config\": no kubeconfig");
    if (version.present() && version.text() != "v1") version.fail("is not \"v1\"");
    read_entries(root["clusters"], "cluster", file, out.clusters, read_cluster);
    read_entries(root["users"], "user", file, out.users, read_user);
    read_entries(root["contexts"], "context", file, out.contexts, read_context);
    out.current_context = root["current-context"].text();
  } catch (const YamlError& e) {
    throw ConfigError(fmt::format("{}: {}", place({file, e.line()}), e.what()));
  }
  if (file.empty()) return out;

  std::error_code ignored;
  const auto base = std::filesystem::absolute(file, ignored).parent_path();
  for (auto& [name, cluster] : out.clusters) resolve_path(cluster.certificate_authority, base);
  for (auto& [name, user] : out.users) {
    resolve_path(user.client_certificate, base);
    resolve_path(user.client_key, base);
    resolve_path(user.token_file, base);
    // A command without a slash is searched for in the PATH.
    if (user.exec && user.exec->command.find('/') != std::string::npos) {
      resolve_path(user.exec->command, base);
    }
  }
  return out;
}

Kubeconfig Kubeconfig::read(const std::string& file) {
  return parse_content(read_small_file(file, FileKind::kOrPipe), file);
}

Kubeconfig Kubeconfig::read_all(const std::vector<std::string>& files) {
  Kubeconfig out;
  for (const std::string& file : files) {
    const FileContent content = read_small_file(file, FileKind::kOrPipe);
    if (!is_missing(content)) out.merge(parse_content(content, file));
  }
  return out;
}

Kubeconfig Kubeconfig::load(const LoadOptions& options) {
  return options.file.empty() ? read_all(default_files()) : read(options.file);
}

std::vector<std::string> Kubeconfig::default_files() {
  const char* list = std::getenv("KUBECONFIG");
  if (list != nullptr && *list != '\0') return split_list(list);
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return {std::string(home) + "/.kube/config"};
}

void Kubeconfig::merge(Kubeconfig other) {
  clusters.merge(other.clusters);
  users.merge(other.users);
  contexts.merge(other.contexts);
  if (current_context.empty()) current_context = std::move(other.current_context);
  files.insert(files.end(), std::make_move_iterator(other.files.begin()),
               std::make_move_iterator(other.files.end()));
}

bool Kubeconfig::chooses_cluster(const LoadOptions& options) const {
  return !current_context.empty() || !options.context.empty() || !options.cluster.empty() ||
         !options.server.empty();
}

Config Kubeconfig::to_config(const LoadOptions& options) const {
  const std::string& context_name = options.context.empty() ? current_context : options.context;
  Context context;
  if (!context_name.empty()) {
    const auto found = contexts.find(context_name);
    if (found == contexts.end()) {
      throw ConfigError(fmt::format("{}context {} does not exist; {}",
                                    files.empty() ? "" : files.front() + ": ",
                                    in_quotes(context_name), known_names(contexts)));
    }
    context = found->second;
  }
  if (!options.cluster.empty()) context.cluster = options.cluster;
  if (!options.user.empty()) context.user = options.user;
  if (!options.ns.empty()) context.ns = options.ns;
  const std::string owner =
      context_name.empty()
          ? "kubeconfig"
          : fmt::format("{}: context {}", place(context.origin), in_quotes(context_name));

  Config config;
  config.default_namespace = context.ns;
  std::string cluster_owner = owner;
  if (const auto cluster = clusters.find(context.cluster); cluster != clusters.end()) {
    use_cluster(cluster->second, config);
    cluster_owner =
        fmt::format("{}: cluster {}", place(cluster->second.origin), in_quotes(context.cluster));
  } else if (context.cluster.empty() && options.server.empty()) {
    throw ConfigError(fmt::format("{}: names no cluster", owner));
  } else if (options.server.empty() || !options.cluster.empty()) {
    throw ConfigError(fmt::format("{}: cluster {} does not exist; {}", owner,
                                  in_quotes(context.cluster), known_names(clusters)));
  }
  if (!options.server.empty()) {
    config.server = options.server;
    config.server_name.clear();  // it belongs to the replaced address
  }
  if (config.server.empty()) {
    throw ConfigError(fmt::format("{}: server is missing", cluster_owner));
  }

  const User* user = nullptr;
  std::string user_owner = owner;
  if (const auto found = users.find(context.user); found != users.end()) {
    user = &found->second;
    user_owner = fmt::format("{}: user {}", place(user->origin), in_quotes(context.user));
  } else if (!context.user.empty()) {
    throw ConfigError(fmt::format("{}: user {} does not exist; {}", owner, in_quotes(context.user),
                                  known_names(users)));
  }
  if (user != nullptr) {
    if (!user->auth_provider.empty()) {
      throw ConfigError(
          fmt::format("{}: auth-provider {} is not supported; its successors are exec "
                      "plugins (kubelogin, gke-gcloud-auth-plugin, ...)",
                      user_owner, in_quotes(user->auth_provider)));
    }
    use_user(*user, config);
    config.as = user->as;
    if (config.exec) {
      const auto cluster = clusters.find(context.cluster);
      if (cluster != clusters.end()) config.exec->cluster_config = cluster->second.exec_config;
    }
  }

  try {
    config = config.normalized();
  } catch (const ConfigError& e) {
    if (context_name.empty()) throw;  // then there is no position to name
    throw ConfigError(fmt::format("{}: {}", owner, e.what()));
  }
  if (!config.uses_tls()) {
    forget_user(config);
    return config;
  }
  check_readable(config.ca_file, "certificate-authority", cluster_owner);
  check_readable(config.client_cert_file, "client-certificate", user_owner);
  check_readable(config.client_key_file, "client-key", user_owner);
  if (config.bearer_token.empty()) check_readable(config.token_file, "tokenFile", user_owner);
  return config;
}

}  // namespace lookout::rest
