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
#include "lookout/base/attributes.h"
#include "lookout/rest/content_type.h"
#include "lookout/rest/warning.h"

namespace lookout::rest {

/// A configuration that cannot be used: what is wrong with it, and in which file. Messages never
/// hold tokens, passwords or keys.
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
  /// Set in addition to the environment of this process.
  LOOKOUT_OPTION std::vector<ExecEnvVar> env = {};
  /// "client.authentication.k8s.io/v1" or ".../v1beta1".
  LOOKOUT_OPTION std::string api_version = "client.authentication.k8s.io/v1";
  /// "Never", "IfAvailable" or "Always": whether the program reads from the terminal.
  LOOKOUT_OPTION std::string interactive_mode = "IfAvailable";
  /// Shown when the program is not there.
  LOOKOUT_OPTION std::string install_hint = {};
  /// Whether the program is told about the server (KUBERNETES_EXEC_INFO, spec.cluster).
  bool provide_cluster_info = false;
  /// JSON for spec.cluster.config, or empty. In a kubeconfig: the cluster's extension
  /// "client.authentication.k8s.io/exec".
  LOOKOUT_OPTION std::string cluster_config = {};
  /// The calling program reads standard input itself: the plugin gets none.
  bool stdin_unavailable = false;

  bool operator==(const ExecConfig&) const = default;
};

/// Whom to act as (client-go's ImpersonationConfig).
struct Impersonation {
  LOOKOUT_OPTION std::string user = {};
  LOOKOUT_OPTION std::string uid = {};
  LOOKOUT_OPTION std::vector<std::string> groups = {};
  LOOKOUT_OPTION std::map<std::string, std::vector<std::string>> extra = {};

  bool operator==(const Impersonation&) const = default;

  /// The Impersonate-* headers of a request: names and values. None without a user.
  std::vector<std::pair<std::string, std::string>> headers() const;
};

/// When a connection over which nothing comes back counts as dead.
///
/// The system's part (TCP): after `idle` of silence the other side is probed every `interval`, and
/// data or probes that stay unanswered for `user_timeout` end the connection. That notices a
/// machine or a network that is gone, within 45 seconds.
///
/// It does not notice a process that is stopped, nor a proxy that has lost the server, because the
/// system and the proxy go on acknowledging. For these, when nothing has come for `probe_after`
/// over a connection on which an answer or a watch is awaited, the server is asked for /version. If
/// no answer comes within `probe_timeout`, whatever it is, the connections over which nothing has
/// come since are closed, and what waits for them fails with TransportError::Kind::kBroken: 45
/// seconds, as client-go's HTTP/2 health check. Over HTTP/2 the question goes over the same
/// connection. Over HTTP/1.1 it cannot, so it tells whether the server answers, not whether this
/// connection is alive: one that alone has been lost behind a proxy ends after `stream_silence` if
/// it carries a watch: bookmarks, which kube-apiserver sends every minute, keep it open, and a
/// watch without them is begun anew. And every watch with a timeout ends at the latest
/// `probe_after` + `probe_timeout` behind it.
struct KeepAlive {
  std::chrono::seconds idle{15};
  std::chrono::seconds interval{5};
  std::chrono::milliseconds user_timeout{25000};
  /// 0: never asks.
  std::chrono::milliseconds probe_after{30000};
  std::chrono::milliseconds probe_timeout{15000};
  /// 0: for ever.
  std::chrono::milliseconds stream_silence{75000};

  bool operator==(const KeepAlive&) const = default;
};

/// Without a deadline, a server that hangs would keep a program from ending. (client-go has none.)
inline constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::seconds(30);

/// Versions of TLS.
enum class TlsVersion { k12, k13 };

/// "lookout/1.2.3 (linux/amd64)".
std::string default_user_agent();

/// Where pods find their service account.
inline constexpr std::string_view kServiceAccountDir =
    "/var/run/secrets/kubernetes.io/serviceaccount";

/// Choices that go before the kubeconfig; kubectl has flags of these names. Empty: no choice.
struct LoadOptions {
  /// --kubeconfig: this file and no other. It must exist.
  LOOKOUT_OPTION std::string file = {};
  /// --context
  LOOKOUT_OPTION std::string context = {};
  /// --cluster and --user: entries other than those that the context names.
  LOOKOUT_OPTION std::string cluster = {};
  LOOKOUT_OPTION std::string user = {};
  /// --server: the address; everything else about the cluster stays, but the name expected in the
  /// server's certificate. No kubeconfig is needed then.
  LOOKOUT_OPTION std::string server = {};
  /// --namespace
  LOOKOUT_OPTION std::string ns = {};
  /// Where in_cluster() looks.
  LOOKOUT_OPTION std::string service_account_dir = std::string(kServiceAccountDir);
};

/// The settings of a client (client-go's rest.Config). A plain value: fill it in by hand, or
/// let one of the functions below do it.
///
/// Certificates and keys are PEM, given either as text (`..._data`) or as a file (`..._file`); if
/// both are set, the text is used. Files of the client's own certificate, key and token are read
/// again when they change, and so is the file of the authority: connections that are made later
/// trust what it holds then.
///
/// A client certificate goes together with any other credentials. The exec plugin is not run if
/// there is a token, a password or a client certificate.
struct Config {
  /// "https://host:6443", possibly with a path that precedes all others. Without a scheme ("host",
  /// "host:port") it is https if there is anything about TLS below (a CA, a client certificate,
  /// `insecure`), otherwise http.
  LOOKOUT_OPTION std::string server = {};
  /// Where requests go that name no namespace.
  LOOKOUT_OPTION std::string default_namespace = "default";

  /// Whom to trust: the certificate authority of the server, alone. Without one: the system's. A
  /// file or text without a certificate is an error (ConfigError when the Client is made).
  LOOKOUT_OPTION std::string ca_data = {};
  LOOKOUT_OPTION std::string ca_file = {};
  LOOKOUT_OPTION std::string client_cert_data = {};
  LOOKOUT_OPTION std::string client_cert_file = {};
  LOOKOUT_OPTION std::string client_key_data = {};
  LOOKOUT_OPTION std::string client_key_file = {};
  /// The name expected in the server's certificate (and sent as SNI) instead of the URL's host.
  LOOKOUT_OPTION std::string server_name = {};
  /// Do not check who the server is. For tests only.
  bool insecure = false;
  /// Older versions of TLS are not spoken.
  TlsVersion min_tls_version = TlsVersion::k12;

  LOOKOUT_OPTION std::string bearer_token = {};
  /// A file with a token. Its last content goes before `bearer_token`.
  LOOKOUT_OPTION std::string token_file = {};
  LOOKOUT_OPTION std::string username = {};
  LOOKOUT_OPTION std::string password = {};
  LOOKOUT_OPTION std::optional<ExecConfig> exec = {};

  LOOKOUT_OPTION Impersonation as = {};

  /// http://, https:// or socks5://. Empty: what http_proxy, https_proxy and no_proxy say. With
  /// socks5, the proxy resolves the server's name, as in client-go.
  LOOKOUT_OPTION std::string proxy_url = {};
  /// Do not ask for compressed answers.
  bool disable_compression = false;
  LOOKOUT_OPTION std::string user_agent = default_user_agent();
  /// How objects are encoded on their way to this client.
  ContentType content_type = ContentType::kAuto;
  /// For a whole request, retries included; 0: none. Watches are not meant, nor what else takes as
  /// long as it takes (logs of pods, a proxy to them); an informer's lists have two minutes, since
  /// a server ends them after one. CallOptions::timeout is for a single call.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  KeepAlive keepalive = {};

  /// The rate of all requests but watches: so many a second in the long run, and `burst` at once;
  /// 0: no limit. A call that would have to wait beyond its deadline fails at once, with a
  /// TransportError of kind kTimeout. (client-go: QPS and Burst.)
  double qps = 0;
  int burst = 10;

  /// Told of the warnings of the server, of each text once; by default they are logged.
  LOOKOUT_OPTION WarningHandler on_warning = {};

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
