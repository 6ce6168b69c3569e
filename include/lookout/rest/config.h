// Config: the address of the API server and the client's credentials.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/base/attributes.h"
#include "lookout/rest/content_type.h"
#include "lookout/rest/warning.h"

namespace lookout::rest {

namespace detail {
class TransportFactory;
}

/// The configuration is not usable. The message names the problem and the file; it never contains
/// tokens, passwords or keys.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// An environment variable for a credential plugin.
struct ExecEnvVar {
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string value = {};
  bool operator==(const ExecEnvVar&) const = default;
};

/// A program that prints credentials (client-go's ExecConfig): `aws eks get-token`, kubelogin, ...
struct ExecConfig {
  /// A program on the PATH, or a path.
  LOOKOUT_OPTION std::string command = {};
  LOOKOUT_OPTION std::vector<std::string> args = {};
  /// Added to the environment of this process.
  LOOKOUT_OPTION std::vector<ExecEnvVar> env = {};
  /// "client.authentication.k8s.io/v1" or ".../v1beta1".
  LOOKOUT_OPTION std::string api_version = "client.authentication.k8s.io/v1";
  /// "Never", "IfAvailable" or "Always": whether the program may read from the terminal.
  LOOKOUT_OPTION std::string interactive_mode = "IfAvailable";
  /// Shown if the program is not found.
  LOOKOUT_OPTION std::string install_hint = {};
  /// Passes information about the server to the program (KUBERNETES_EXEC_INFO, spec.cluster).
  bool provide_cluster_info = false;
  /// JSON for spec.cluster.config, or empty. In a kubeconfig: the cluster's extension
  /// "client.authentication.k8s.io/exec".
  LOOKOUT_OPTION std::string cluster_config = {};
  /// Set if the calling program reads standard input itself: the plugin then gets none.
  bool stdin_unavailable = false;

  bool operator==(const ExecConfig&) const = default;
};

/// The user to impersonate (client-go's ImpersonationConfig).
struct Impersonation {
  LOOKOUT_OPTION std::string user = {};
  LOOKOUT_OPTION std::string uid = {};
  LOOKOUT_OPTION std::vector<std::string> groups = {};
  LOOKOUT_OPTION std::map<std::string, std::vector<std::string>> extra = {};

  bool operator==(const Impersonation&) const = default;

  /// The Impersonate-* headers of a request: names and values. Empty without a user.
  std::vector<std::pair<std::string, std::string>> headers() const;
};

/// When a silent connection counts as dead.
///
/// TCP keepalive: after `idle` of silence the system probes the peer every `interval`; data or
/// probes that stay unacknowledged for `user_timeout` end the connection. This detects a lost
/// machine or network within 45 seconds.
///
/// It does not detect a process that is stopped or a proxy that has lost the server, because the
/// system or the proxy still acknowledges. For these there is a health check like that of client-go
/// for HTTP/2: if a connection with a pending answer or watch is silent for `probe_after`, the
/// client requests /version. If no answer comes within `probe_timeout`, it closes the connections
/// that are still silent, and their requests fail with TransportError::Kind::kBroken: 45 seconds in
/// total. Over HTTP/2, the probe uses the same connection. Over HTTP/1.1 (everything without TLS,
/// and lists always) it cannot, so it shows that the server answers, not that this connection is
/// alive. There, a watch ends after `stream_silence` without data: bookmarks, which kube-apiserver
/// sends every minute, keep it open, and a watch without bookmarks is restarted. Finally, every
/// watch with a timeout ends at most `probe_after` + `probe_timeout` after that timeout.
struct KeepAlive {
  std::chrono::seconds idle{15};
  std::chrono::seconds interval{5};
  std::chrono::milliseconds user_timeout{25000};
  /// 0: no health check.
  std::chrono::milliseconds probe_after{30000};
  std::chrono::milliseconds probe_timeout{15000};
  /// 0: no limit.
  std::chrono::milliseconds stream_silence{75000};

  bool operator==(const KeepAlive&) const = default;
};

/// Without a deadline, a hanging server would keep a program from ending. (client-go has no default.)
inline constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::seconds(30);

/// TLS versions.
enum class TlsVersion { k12, k13 };

/// "my-controller/1.2.3 (linux/amd64) lookout": the name of this process' executable, and Lookout's
/// version. API servers take the name as field manager of updates without one, as with client-go.
std::string default_user_agent();

/// The directory of a pod's service account.
inline constexpr std::string_view kServiceAccountDir =
    "/var/run/secrets/kubernetes.io/serviceaccount";

/// Settings that take precedence over the kubeconfig; kubectl has flags of the same names. Empty:
/// not set.
struct LoadOptions {
  /// --kubeconfig: only this file is read. It must exist.
  LOOKOUT_OPTION std::string file = {};
  /// --context
  LOOKOUT_OPTION std::string context = {};
  /// --cluster and --user: entries to use instead of those in the context.
  LOOKOUT_OPTION std::string cluster = {};
  LOOKOUT_OPTION std::string user = {};
  /// --server: replaces the address of the cluster and the name expected in its certificate; the
  /// other settings of the cluster stay. No kubeconfig is needed then.
  LOOKOUT_OPTION std::string server = {};
  /// --namespace
  LOOKOUT_OPTION std::string ns = {};
  /// The directory that in_cluster() reads.
  LOOKOUT_OPTION std::string service_account_dir = std::string(kServiceAccountDir);
};

/// The settings of a client (client-go's rest.Config). A plain value: fill it in by hand, or use
/// one of the functions below.
///
/// Certificates and keys are PEM, given as text (`..._data`) or as a file (`..._file`); if both are
/// set, the text wins. The files of the client's certificate, key and token are read again when
/// they change, and so is the CA file: new connections trust its current content.
///
/// A client certificate can be combined with any other credentials. The exec plugin does not run if
/// there is a token, a password or a client certificate.
struct Config {
  /// "https://host:6443", optionally with a path prefix. Without a scheme ("host", "host:port"),
  /// the scheme is https if any TLS setting below is present (a CA, a client certificate,
  /// `insecure`), otherwise http.
  LOOKOUT_OPTION std::string server = {};
  /// The namespace of requests that name none.
  LOOKOUT_OPTION std::string default_namespace = "default";

  /// The certificate authority of the server; only this one is trusted. Empty: the system's CAs. A
  /// file or text without a certificate is an error (ConfigError when the Client is made).
  LOOKOUT_OPTION std::string ca_data = {};
  LOOKOUT_OPTION std::string ca_file = {};
  LOOKOUT_OPTION std::string client_cert_data = {};
  LOOKOUT_OPTION std::string client_cert_file = {};
  LOOKOUT_OPTION std::string client_key_data = {};
  LOOKOUT_OPTION std::string client_key_file = {};
  /// The name expected in the server's certificate (and sent as SNI) instead of the URL's host.
  LOOKOUT_OPTION std::string server_name = {};
  /// Skips the verification of the server's certificate. For tests only.
  bool insecure = false;
  /// The lowest TLS version to accept.
  TlsVersion min_tls_version = TlsVersion::k12;

  LOOKOUT_OPTION std::string bearer_token = {};
  /// A file with a token. Its content takes precedence over `bearer_token`.
  LOOKOUT_OPTION std::string token_file = {};
  LOOKOUT_OPTION std::string username = {};
  LOOKOUT_OPTION std::string password = {};
  LOOKOUT_OPTION std::optional<ExecConfig> exec = {};

  LOOKOUT_OPTION Impersonation as = {};

  /// http://, https:// or socks5://. Empty: the settings in http_proxy, https_proxy and no_proxy.
  /// With socks5, the proxy resolves the server's name, as in client-go.
  LOOKOUT_OPTION std::string proxy_url = {};
  /// Does not request compressed answers.
  bool disable_compression = false;
  LOOKOUT_OPTION std::string user_agent = default_user_agent();
  /// The encoding in which this client requests objects.
  ContentType content_type = ContentType::kAuto;
  /// The deadline of a whole request, including retries; 0: none. It does not apply to watches and
  /// other long-running requests (logs of pods, a proxy to them). An informer's lists have two
  /// minutes, because a server ends them after one. CallOptions::timeout sets the deadline of a
  /// single call.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  KeepAlive keepalive = {};

  /// The rate limit of all requests except watches: `qps` requests per second, with bursts of
  /// `burst`; 0: no limit. A call that would have to wait beyond its deadline fails immediately
  /// with a TransportError of kind kTimeout. (client-go: QPS and Burst.)
  double qps = 0;
  int burst = 10;

  /// Called for the server's warnings, once for each text; the default logs them.
  LOOKOUT_OPTION WarningHandler on_warning = {};

  /// How requests reach the server. Null: over the network, by libcurl. A simulation has a network
  /// of its own (lookout/testing/sim/world.h); addresses, proxies and TLS settings mean nothing
  /// there.
  LOOKOUT_OPTION std::shared_ptr<detail::TransportFactory> transport = nullptr;

  bool operator==(const Config&) const = default;

  /// Loads the configuration as a Kubernetes tool does: from the kubeconfig ($KUBECONFIG, or
  /// ~/.kube/config); if there is none or it chooses no cluster, from the pod that the program runs
  /// in. Throws ConfigError, which lists the places it looked at. The result is normalized.
  /// (client-go: clientcmd.NewNonInteractiveDeferredLoadingClientConfig)
  static Config load(const LoadOptions& options = {});

  /// For a program in a pod: takes the API server's address from the environment, token and CA from
  /// `service_account_dir`, the namespace from $POD_NAMESPACE or that directory. Throws ConfigError
  /// outside a pod. Without a CA file, trusts the system's CAs. (client-go: rest.InClusterConfig)
  static Config in_cluster(
      const std::string& service_account_dir = std::string(kServiceAccountDir));

  /// Loads the kubeconfig only. Throws ConfigError if it chooses no cluster.
  static Config from_kubeconfig(const LoadOptions& options = {});

  /// Returns the configuration with `server` as "scheme://host[:port][/prefix]" and with the token
  /// trimmed, as clients use it. Throws ConfigError for contradictions and mistakes: no server, a
  /// password and a token, `insecure` and a CA, a certificate without its key, impersonated groups
  /// without a user, characters that are invalid in a header ... Reads no files.
  Config normalized() const;

  /// True if the client uses TLS, according to the URL and the rules above.
  bool uses_tls() const;

  /// `ca_data`, or the current content of `ca_file`; empty without either. Throws ConfigError.
  std::string ca() const;
};

}  // namespace lookout::rest
