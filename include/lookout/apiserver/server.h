// Server: an API server inside a program.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/attributes.h"
#include "lookout/base/pinned.h"
#include "lookout/rest/config.h"

namespace lookout::http {
class Transport;
}

namespace lookout::apiserver {

/// Returns the address of a service, "host:port", or nothing if the server should find it itself.
/// Called on the server's threads, with no lock held; it must not block.
using ServiceResolver = std::function<std::optional<std::string>(
    const std::string& ns, const std::string& name, std::uint16_t port)>;

/// A request for a resource, for the functions of ServerOptions that make requests fail.
struct ServedRequest {
  /// "get", "list", "watch", "create", "update", "patch", "delete" or "deletecollection".
  LOOKOUT_OPTION std::string verb = {};
  LOOKOUT_OPTION std::string group = {};
  /// The plural: "pods".
  LOOKOUT_OPTION std::string resource = {};
  LOOKOUT_OPTION std::string subresource = {};
  LOOKOUT_OPTION std::string ns = {};
  /// Empty for lists, watches and creations.
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string user = {};
};

/// Called on the server's threads, possibly several times at once, with no lock held; must not block.
/// If it throws an api::StatusError, that is the response to the request; any other exception is a
/// 500.
using RequestFunction = std::function<void(const ServedRequest& request)>;

/// Which requests of authenticated users the server allows.
enum class Authorization {
  kAlwaysAllow,  ///< all
  kRbac          ///< those that Roles, ClusterRoles and their bindings grant
};

/// The content of the audit log.
enum class AuditLevel {
  kNone,
  kMetadata,  ///< user, verb, object, result
  kRequest    ///< also the body of a write, except of Secrets, ConfigMaps and tokens
};

struct ServerOptions {
  /// False: no socket; only connect() reaches the server.
  bool listens = true;
  /// The IP address to listen on; "0.0.0.0" or "::": all addresses, IPv4 and IPv6.
  LOOKOUT_OPTION std::string address = "127.0.0.1";
  /// 0: any free port.
  std::uint16_t port = 0;

  /// PEM files. With a certificate, the server speaks TLS only.
  LOOKOUT_OPTION std::string tls_cert_file = {};
  LOOKOUT_OPTION std::string tls_key_file = {};
  /// Clients may authenticate with certificates of this authority: the common name is the user, the
  /// organizations are the groups.
  LOOKOUT_OPTION std::string client_ca_file = {};
  /// Clients may authenticate with bearer tokens from this file. The format is kube-apiserver's:
  /// lines of `token,user,uid,"group1,group2"`.
  LOOKOUT_OPTION std::string token_file = {};

  /// With kRbac, users in the group system:masters may still do everything, and so may requests
  /// without credentials if there is neither a token file nor a client CA.
  Authorization authorization = Authorization::kAlwaysAllow;
  /// Creates at the start what every cluster has: the bootstrap ClusterRoles and bindings (missing
  /// rules and subjects are added to those that exist), FlowSchemas, PriorityLevelConfigurations,
  /// APIServices, the Service default/kubernetes, and with a client CA the ConfigMap
  /// kube-system/extension-apiserver-authentication. Also fills in the rules of aggregated
  /// ClusterRoles and the status of FlowSchemas. Unset: only with kRbac.
  std::optional<bool> bootstrap = {};
  /// A PEM file with the private key that signs service account tokens: RSA, or EC on P-256. Empty:
  /// the server generates a key, and tokens become invalid when the server ends.
  LOOKOUT_OPTION std::string service_account_key_file = {};
  /// The issuer of service account tokens, and their audience by default.
  LOOKOUT_OPTION std::string service_account_issuer =
      "https://kubernetes.default.svc.cluster.local";

  /// Names of admission plugins, as for kube-apiserver. "ServiceAccount" is the only one that can be
  /// switched on and off. It is off by default: then pods may name accounts that do not exist, as with
  /// controller-runtime's envtest. If it is on, new pods need an account, "default" unless they name
  /// one, and get a volume with its token; and the server keeps in each namespace the account "default"
  /// and the config map kube-root-ca.crt.
  LOOKOUT_OPTION std::vector<std::string> enable_admission_plugins = {};
  LOOKOUT_OPTION std::vector<std::string> disable_admission_plugins = {};

  /// Host names that clients may use, besides IP addresses and "localhost", if the server requires
  /// no authentication (see Server).
  LOOKOUT_OPTION std::vector<std::string> allowed_hosts = {};

  /// Each thread serves a share of the connections. 0: one per processor.
  unsigned threads = 2;
  /// The number of changes kept for each resource: how far a watch may be behind.
  std::size_t history = 10000;
  /// The first resourceVersion in memory. 0: derived from the time, so that it exceeds the
  /// resourceVersions of an earlier run, which then have expired.
  std::uint64_t first_revision = 0;
  /// The storage of objects; null: a separate one in memory.
  LOOKOUT_OPTION std::shared_ptr<storage::Backend> storage = nullptr;

  /// One line of JSON (audit.k8s.io/v1 Event) is appended to this file for each answered request.
  /// Empty: no audit log.
  LOOKOUT_OPTION std::string audit_log_file = {};
  AuditLevel audit_level = AuditLevel::kMetadata;

  std::size_t max_connections = 20000;
  /// The limit for one address (with IPv6: one /64 network); further connections are closed. 0: no
  /// limit.
  std::size_t max_connections_per_address = 10000;
  /// The maximum number of running requests of one user, not counting watches and system:masters;
  /// further ones are rejected with 429. 0: no limit.
  std::size_t max_requests_per_user = 0;
  /// The same limit for the requests from one address, for all users together.
  std::size_t max_requests_per_address = 0;
  std::size_t max_header_bytes = 64u << 10;
  std::size_t max_body_bytes = 3u << 20;
  /// For the head of a request, counted from its first byte, and for its body.
  std::chrono::milliseconds header_timeout{15000};
  std::chrono::milliseconds body_timeout{60000};
  /// For a connection without activity.
  std::chrono::milliseconds idle_timeout{180000};
  /// For a client to read each piece of a response.
  std::chrono::milliseconds write_timeout{60000};
  /// Watches without a timeout end after a random time between this and twice as much.
  std::chrono::milliseconds min_watch_timeout{std::chrono::minutes(30)};
  std::chrono::milliseconds bookmark_interval{std::chrono::minutes(1)};
  /// How long a request or a watch waits for a future resourceVersion before it fails with 504
  /// ("Too large resource version").
  std::chrono::milliseconds future_wait{3000};
  /// False: no managedFields, and no server-side apply (415). Writes cost less.
  bool managed_fields = true;
  /// The IPv4 range for cluster IPs of services.
  LOOKOUT_OPTION std::string service_cluster_ip_range = "10.0.0.0/16";
  /// Resolves webhooks that name a service. If it is null or returns nothing, the server uses a
  /// ready endpoint from the service's EndpointSlices, or else the service's cluster IP.
  LOOKOUT_OPTION ServiceResolver resolve_service = nullptr;
  /// Makes requests fail, for tests: controller-runtime's interceptor.Funcs, for all clients of the
  /// server. `before_request` is called after the authorization of a request, before any other work.
  /// `after_request` is called when the request has succeeded, before the response is sent: it can
  /// fail a write that was stored.
  ///
  ///     std::atomic<int> n{0};
  ///     options.before_request = [&](const apiserver::ServedRequest& request) {
  ///       if (request.verb == "update" && request.resource == "deployments" && ++n == 2)
  ///         throw api::StatusError::conflict("apps", "deployments", request.name, "try again");
  ///     };
  LOOKOUT_OPTION RequestFunction before_request = nullptr;
  LOOKOUT_OPTION RequestFunction after_request = nullptr;
  /// After a stop is requested, the server keeps serving for this long while /readyz fails, so that
  /// load balancers can react.
  std::chrono::milliseconds shutdown_delay{0};
};

/// Counters since the start, and current values.
struct ServerStats {
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;  ///< requests answered with a failure Status
  std::uint64_t lists = 0;
  std::uint64_t watches_started = 0;
  std::int64_t watches = 0;          ///< currently open
  std::uint64_t events_sent = 0;     ///< summed over all watches
  std::uint64_t events_encoded = 0;  ///< less: one encoding serves many watches
  std::uint64_t slow_watchers = 0;   ///< ended because their client did not read
  std::size_t connections = 0;       ///< currently open
};

/// Implements enough of the Kubernetes API for kubectl, client-go and other clients: discovery, all
/// built-in resources, custom resources through CustomResourceDefinitions; create, get, list,
/// watch, update, patch, delete, with the semantics and messages of kube-apiserver.
///
///     apiserver::Server server;
///     rest::Client client(server.client_config());
///
/// There is no controller manager, no scheduler and no node: the server stores objects and runs
/// nothing. The server itself empties deleted namespaces and deletes the instances of deleted
/// definitions, pods at the end of their grace period, and objects whose owners are gone.
///
/// Without a token file and a client CA, everyone may do everything, except web pages from other
/// origins: the server rejects a Host other than IP addresses, "localhost" and allowed names, a
/// foreign Origin or Sec-Fetch-Site, and a body without a Content-Type (403, 415). With either
/// file, requests without credentials are rejected, and every authenticated user may do everything,
/// including impersonation (Impersonate-User etc.), unless ServerOptions::authorization is kRbac.
///
/// A process may run any number of servers. All functions may be called from any thread, except
/// that stop() and the destructor must not be called on a server's own thread.
class Server : public base::Pinned {
 public:
  /// Starts to serve before it returns. Throws lookout::Error if the address cannot be bound or a
  /// file is not usable.
  explicit Server(ServerOptions options = {});
  /// Calls stop().
  ~Server();

  /// "http://127.0.0.1:40123".
  std::string url() const;
  std::uint16_t port() const;

  /// The configuration of a client in this process: the address, the certificate and, if the server
  /// requires authentication, credentials of a privileged user.
  rest::Config client_config() const;

  /// The same for another user. The user is in `groups` and in system:authenticated;
  /// "system:serviceaccount:NAMESPACE:NAME" is also in the groups of service accounts. The
  /// credentials are valid until this server ends.
  ///
  ///     ServerOptions options;
  ///     options.authorization = apiserver::Authorization::kRbac;
  ///     apiserver::Server server(options);
  ///     rest::Client client(server.config_for("ann", {"developers"}));
  rest::Config config_for(const std::string& user, std::vector<std::string> groups = {}) const;
  /// The same for a service account, which need not exist: a controller with this client has the
  /// rights that its manifests give.
  rest::Config config_for_service_account(const std::string& ns, const std::string& name) const;

  /// Serves a connection that does not use a socket, such as one of a simulated network. `make` is
  /// called on the thread that serves the connection.
  void connect(
      std::function<std::unique_ptr<http::Transport>(boost::asio::any_io_executor executor)> make);

  /// The storage, bypassing all rules of the API: for simulations and measurements.
  storage::Backend& storage() const;

  ServerStats stats() const;

  /// Ends watches, waits up to `grace` for running requests before it closes their connections, and
  /// ends all threads. A second call during the stop only ends the shutdown_delay.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver
