// Where the API server is and how a client identifies itself to it.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/rest/content_type.h"

namespace lookout::rest {

/// A configuration that cannot be used: what is wrong with it, and in which file. Messages never
/// hold tokens, passwords or keys.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// An environment variable for a credential plugin.
struct ExecEnvVar {
  std::string name = {};
  std::string value = {};
  bool operator==(const ExecEnvVar&) const = default;
};

/// A program that prints credentials (client-go's ExecConfig): `aws eks get-token`, kubelogin, ...
struct ExecConfig {
  /// A program on the PATH, or a path.
  std::string command = {};
  std::vector<std::string> args = {};
  /// Set in addition to the environment of this process.
  std::vector<ExecEnvVar> env = {};
  /// "client.authentication.k8s.io/v1" or ".../v1beta1".
  std::string api_version = "client.authentication.k8s.io/v1";
  /// "Never", "IfAvailable" or "Always": whether the program reads from the terminal.
  std::string interactive_mode = "IfAvailable";
  /// Shown when the program is not there.
  std::string install_hint = {};
  /// Whether the program is told about the server (KUBERNETES_EXEC_INFO, spec.cluster).
  bool provide_cluster_info = false;
  /// JSON for spec.cluster.config, or empty. In a kubeconfig: the cluster's extension
  /// "client.authentication.k8s.io/exec".
  std::string cluster_config = {};
  /// The calling program reads standard input itself: the plugin gets none.
  bool stdin_unavailable = false;

  bool operator==(const ExecConfig&) const = default;
};

/// Whom to act as (client-go's ImpersonationConfig).
struct Impersonation {
  std::string user = {};
  std::string uid = {};
  std::vector<std::string> groups = {};
  std::map<std::string, std::vector<std::string>> extra = {};

  bool operator==(const Impersonation&) const = default;

  /// The Impersonate-* headers of a request: names and values. None without a user.
  std::vector<std::pair<std::string, std::string>> headers() const;
};

/// When a connection over which nothing comes back counts as dead: after `idle` of silence the
/// other side is probed every `interval`, and data or probes that stay unanswered for
/// `user_timeout` end the connection. The defaults notice a half-open connection within 45 seconds,
/// as client-go's HTTP/2 health check does.
struct KeepAlive {
  std::chrono::seconds idle{15};
  std::chrono::seconds interval{5};
  std::chrono::milliseconds user_timeout{25000};

  bool operator==(const KeepAlive&) const = default;
};

/// "lookout/1.2.3 (linux/amd64)".
std::string default_user_agent();

/// Where pods find their service account.
inline constexpr std::string_view kServiceAccountDir =
    "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a program or its user chooses instead of what the kubeconfig says; kubectl has flags of
/// these names. Empty: no choice.
struct LoadOptions {
  /// --kubeconfig: this file and no other. It must exist.
  std::string file = {};
  /// --context
  std::string context = {};
  /// --cluster and --user: entries other than those that the context names.
  std::string cluster = {};
  std::string user = {};
  /// --server: the address; everything else about the cluster stays, but the name expected in the
  /// server's certificate. No kubeconfig is needed then.
  std::string server = {};
  /// --namespace
  std::string ns = {};
  /// Where in_cluster() looks.
  std::string service_account_dir = std::string(kServiceAccountDir);
};

/// What a client needs to connect (client-go's rest.Config). A plain value: fill it in by hand, or
/// let one of the functions below do it.
///
/// Certificates and keys are PEM, given either as text (`..._data`) or as a file (`..._file`); if
/// both are set, the text is used. Files of the client's own certificate, key and token are read
/// again when they change; the file of the authority is read when the Client is made.
///
/// Of several ways to identify oneself, these go together: a client certificate with any other. A
/// token or a password leaves no work for the exec plugin: it is not run then, and neither is it
/// with a client certificate.
struct Config {
  /// "https://host:6443", possibly with a path that precedes all others. Without a scheme ("host",
  /// "host:port") it is https if there is anything about TLS below (a CA, a client certificate,
  /// `insecure`), otherwise http.
  std::string server = {};
  /// Where requests go that name no namespace.
  std::string default_namespace = "default";

  /// Whom to trust: the certificate authority of the server, alone. Without one: the system's.
  std::string ca_data = {};
  std::string ca_file = {};
  std::string client_cert_data = {};
  std::string client_cert_file = {};
  std::string client_key_data = {};
  std::string client_key_file = {};
  /// The name expected in the server's certificate (and sent as SNI) instead of the URL's host.
  std::string server_name = {};
  /// Do not check who the server is. For tests only.
  bool insecure = false;

  std::string bearer_token = {};
  /// A file with a token. What it last held goes before `bearer_token`.
  std::string token_file = {};
  std::string username = {};
  std::string password = {};
  std::optional<ExecConfig> exec = {};

  Impersonation as = {};

  /// http://, https:// or socks5://. Empty: what http_proxy, https_proxy and no_proxy say. With
  /// socks5, the proxy resolves the server's name, as in client-go.
  std::string proxy_url = {};
  /// Do not ask for compressed answers.
  bool disable_compression = false;
  std::string user_agent = default_user_agent();
  /// How objects are encoded on their way to this client.
  ContentType content_type = ContentType::kAuto;
  /// For a whole request that is no watch; 0: none.
  std::chrono::milliseconds timeout{0};
  KeepAlive keepalive = {};

  bool operator==(const Config&) const = default;

  /// The configuration that a Kubernetes tool uses here: that of the kubeconfig ($KUBECONFIG, or
  /// ~/.kube/config); if there is none or it chooses no cluster, that of the pod this runs in.
  /// Throws ConfigError, saying what was looked for. The result is normalized. (client-go:
  /// clientcmd.NewNonInteractiveDeferredLoadingClientConfig)
  static Config load(const LoadOptions& options = {});

  /// For a program in a pod: the API server's address from the environment, token and CA from
  /// `service_account_dir`, the namespace from $POD_NAMESPACE or that directory. Throws ConfigError
  /// when this is no pod. Without a CA file, the system's CAs are trusted. (client-go:
  /// rest.InClusterConfig)
  static Config in_cluster(
      const std::string& service_account_dir = std::string(kServiceAccountDir));

  /// From the kubeconfig alone. Throws ConfigError when it chooses no cluster.
  static Config from_kubeconfig(const LoadOptions& options = {});

  /// The same configuration with `server` as "scheme://host[:port][/prefix]" and without space
  /// around the token, as clients use it. Throws ConfigError for what cannot be meant: no server, a
  /// password and a token, `insecure` and a CA, a certificate without its key, groups to act as
  /// without a user, characters that break a header ... Reads no files.
  Config normalized() const;

  /// Whether the server is reached over TLS, as far as the URL and the rules above say.
  bool uses_tls() const;

  /// `ca_data`, or what is in `ca_file` now; empty without either. Throws ConfigError.
  std::string ca() const;
};

}  // namespace lookout::rest
