// Kubeconfig: reading, merging and writing kubeconfig files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/rest/config.h"

namespace lookout::rest {

/// The content of one or more kubeconfig files (client-go's clientcmdapi.Config).
///
/// Reading follows clientcmd: YAML or JSON; unknown fields are ignored; names in a list must be
/// unique; of several documents in a file, the first counts. A file with more than 4 MiB, 64 levels
/// or 200,000 values is refused, and so are aliases that expand to more than a few times that.
/// Errors are ConfigError and begin with "file:line: field".
class Kubeconfig {
 public:
  /// The source of an entry.
  struct Origin {
    std::string file;
    int line = 0;
  };

  struct Cluster {
    std::string server;
    std::string tls_server_name;
    bool insecure_skip_tls_verify = false;
    std::string certificate_authority;       // a path
    std::string certificate_authority_data;  // PEM
    std::string proxy_url;
    bool disable_compression = false;
    std::string exec_config;  // JSON of the extension "client.authentication.k8s.io/exec"
    Origin origin;
  };

  struct User {
    std::string client_certificate;       // a path
    std::string client_certificate_data;  // PEM
    std::string client_key;               // a path
    std::string client_key_data;          // PEM
    std::string token;
    std::string token_file;
    std::string username;
    std::string password;
    Impersonation as;
    std::optional<ExecConfig> exec;
    std::string auth_provider;  // the name of an old-style auth plugin; not supported
    Origin origin;
  };

  struct Context {
    std::string cluster;
    std::string user;
    std::string ns;
    Origin origin;
  };

  std::map<std::string, Cluster, std::less<>> clusters;
  std::map<std::string, User, std::less<>> users;
  std::map<std::string, Context, std::less<>> contexts;
  std::string current_context;
  /// The files that were read, in order of precedence.
  std::vector<std::string> files;

  /// `file` is used in messages and, unless it is empty, to resolve relative paths.
  static Kubeconfig parse(std::string_view text, const std::string& file = {});
  /// Throws ConfigError if the file cannot be read.
  static Kubeconfig read(const std::string& file);
  /// Reads all of `files` that exist. For each name of an entry, and for current-context, the first
  /// file that has it wins.
  static Kubeconfig read_all(const std::vector<std::string>& files);
  /// Reads options.file, or else default_files().
  static Kubeconfig load(const LoadOptions& options = {});

  /// The files that $KUBECONFIG lists, or ~/.kube/config.
  static std::vector<std::string> default_files();

  /// Adds the entries of `other` that this one lacks.
  void merge(Kubeconfig other);

  /// True if there is a server to connect to: a chosen context or cluster, or an address. If not, a
  /// program that may run in a pod should try the in-cluster configuration.
  bool chooses_cluster(const LoadOptions& options = {}) const;

  /// The configuration of the chosen context, normalized. The files it names must be readable.
  /// Throws ConfigError.
  ///
  /// Over plain http, no credentials are sent, as in clientcmd: anyone on the network could read
  /// them. (Impersonation is not secret and stays.)
  Config to_config(const LoadOptions& options = {}) const;
};

/// A kubeconfig with one cluster, one user and one context, all called `name`: what another tool
/// needs to connect as `config` does. Paths become absolute. Exec plugins are not written: throws
/// InvalidArgument for a configuration with one.
std::string render_kubeconfig(const Config& config, std::string_view name = "lookout");

/// Writes render_kubeconfig() to a file that only its owner may read, replacing the file in one
/// step: a reader sees the old or the new text, never a part. Makes the directory if there is
/// none. A pipe or a device (/dev/stdout) is written to directly. Throws ConfigError.
void write_kubeconfig(const std::string& file, const Config& config,
                      std::string_view name = "lookout");

}  // namespace lookout::rest
