#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "lookout/base/base64.h"
#include "lookout/rest/kubeconfig.h"

namespace lookout::rest {
namespace {

namespace fs = std::filesystem;

/// "key: value" with quotes, so that a token of digits is text.
void write_text(YAML::Emitter& out, const char* key, const std::string& value) {
  if (value.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
}

void write_flag(YAML::Emitter& out, const char* key, bool value) {
  if (value) out << YAML::Key << key << YAML::Value << true;
}

void write_pem(YAML::Emitter& out, const std::string& data_key, const std::string& data,
               const char* file_key, const std::string& file) {
  if (!data.empty()) {
    write_text(out, data_key.c_str(), encode_base64(data));
  } else if (!file.empty()) {
    write_text(out, file_key, fs::absolute(file).string());
  }
}

void write_cluster(YAML::Emitter& out, const Config& config) {
  write_text(out, "server", config.server);
  write_text(out, "tls-server-name", config.server_name);
  write_flag(out, "insecure-skip-tls-verify", config.insecure);
  write_pem(out, "certificate-authority-data", config.ca_data, "certificate-authority",
            config.ca_file);
  write_text(out, "proxy-url", config.proxy_url);
  write_flag(out, "disable-compression", config.disable_compression);
}

void write_user(YAML::Emitter& out, const Config& config) {
  write_pem(out, "client-certificate-data", config.client_cert_data, "client-certificate",
            config.client_cert_file);
  write_pem(out, "client-key-data", config.client_key_data, "client-key", config.client_key_file);
  write_text(out, "token", config.bearer_token);
  if (!config.token_file.empty()) {
    write_text(out, "tokenFile", fs::absolute(config.token_file).string());
  }
  write_text(out, "username", config.username);
  write_text(out, "password", config.password);
  write_text(out, "as", config.as.user);
  write_text(out, "as-uid", config.as.uid);
  if (!config.as.groups.empty()) {
    out << YAML::Key << "as-groups" << YAML::Value << YAML::BeginSeq;
    for (const std::string& group : config.as.groups) out << YAML::DoubleQuoted << group;
    out << YAML::EndSeq;
  }
  if (!config.as.extra.empty()) {
    out << YAML::Key << "as-user-extra" << YAML::Value << YAML::BeginMap;
    for (const auto& [name, values] : config.as.extra) {
      out << YAML::Key << YAML::DoubleQuoted << name << YAML::Value << YAML::BeginSeq;
      for (const std::string& value : values) out << YAML::DoubleQuoted << value;
      out << YAML::EndSeq;
    }
    out << YAML::EndMap;
  }
}

/// A list with one entry: {name: N, <key>: {...}}.
template <class Write>
void write_entry(YAML::Emitter& out, const char* list, const char* key, const std::string& name,
                 Write write) {
  out << YAML::Key << list << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  write_text(out, "name", name);
  out << YAML::Key << key << YAML::Value << YAML::BeginMap;
  write();
  out << YAML::EndMap << YAML::EndMap << YAML::EndSeq;
}

[[noreturn]] void fail(const std::string& file, int code) {
  throw ConfigError(
      fmt::format("cannot write {}: {}", file, std::generic_category().message(code)));
}

/// A temporary file. The destructor closes it, and removes it unless it was renamed.
class Output {
 public:
  Output(int fd, std::string remove) : fd_(fd), remove_(std::move(remove)) {}
  ~Output() {
    if (fd_ >= 0) ::close(fd_);
    if (!remove_.empty()) ::unlink(remove_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  int fd() const { return fd_; }
  /// Returns errno, or 0.
  int write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::write(fd_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
  }
  void keep() { remove_.clear(); }

 private:
  int fd_;
  std::string remove_;
};

void write_in_place(const std::string& file, std::string_view text) {
  Output out(::open(file.c_str(), O_WRONLY | O_CLOEXEC), "");
  if (out.fd() < 0) fail(file, errno);
  if (const int code = out.write(text); code != 0) fail(file, code);
}

void replace_file(const std::string& file, std::string_view text) {
  std::string temporary = file + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);  // with mode 0600
  if (fd < 0) fail(file, errno);
  Output out(fd, temporary);
  if (const int code = out.write(text); code != 0) fail(file, code);
  if (::fsync(fd) != 0) fail(file, errno);
  if (::rename(temporary.c_str(), file.c_str()) != 0) fail(file, errno);
  out.keep();
}

}  // namespace

std::string render_kubeconfig(const Config& config, std::string_view name) {
  if (config.exec) throw InvalidArgument("a kubeconfig with an exec plugin cannot be rendered");
  const std::string entry(name);
  YAML::Emitter out;
  out << YAML::BeginMap;
  out << YAML::Key << "apiVersion" << YAML::Value << "v1";
  out << YAML::Key << "kind" << YAML::Value << "Config";
  write_entry(out, "clusters", "cluster", entry, [&] { write_cluster(out, config); });
  write_entry(out, "users", "user", entry, [&] { write_user(out, config); });
  write_entry(out, "contexts", "context", entry, [&] {
    write_text(out, "cluster", entry);
    write_text(out, "user", entry);
    if (config.default_namespace != "default") {
      write_text(out, "namespace", config.default_namespace);
    }
  });
  write_text(out, "current-context", entry);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

void write_kubeconfig(const std::string& file, const Config& config, std::string_view name) {
  const std::string text = render_kubeconfig(config, name);
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_in_place(file, text);

  // For a symbolic link, replaces the file that it points to, not the link.
  fs::path target = fs::exists(status) ? fs::canonical(file, error) : fs::path(file);
  if (error && fs::exists(status)) fail(file, error.value());
  if (target.has_parent_path()) {
    fs::create_directories(target.parent_path(), error);
    if (error) fail(target.parent_path().string(), error.value());
  }
  replace_file(target.string(), text);
}

}  // namespace lookout::rest
