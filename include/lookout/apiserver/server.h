// An API server inside a program.
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
#include "lookout/rest/config.h"

namespace lookout::apiserver {

/// Where a service is: "host:port"; nothing if the server is to look by itself. Called on the
/// server's threads, with no lock held; it must not block.
using ServiceResolver = std::function<std::optional<std::string>(
    const std::string& ns, const std::string& name, std::uint16_t port)>;

struct ServerOptions {
  /// Where to listen: an IP address.
  LOOKOUT_OPTION std::string address = "127.0.0.1";
  /// 0: any port that is free.
  std::uint16_t port = 0;

  /// PEM files. With a certificate the server speaks TLS, and nothing else.
  LOOKOUT_OPTION std::string tls_cert_file = {};
  LOOKOUT_OPTION std::string tls_key_file = {};
  /// Clients may identify themselves by certificates of this authority: the common name is the
  /// user, the organizations are the groups.
  LOOKOUT_OPTION std::string client_ca_file = {};
  /// Clients may identify themselves by bearer tokens: kube-apiserver's file, with lines of
  /// `token,user,uid,"group1,group2"`.
  LOOKOUT_OPTION std::string token_file = {};

  /// Names that clients may ask for the server under, besides addresses and "localhost", while it
  /// asks for no credentials (see Server).
  LOOKOUT_OPTION std::vector<std::string> allowed_hosts = {};

  /// Each serves a share of the connections. 0: as many as the machine has processors.
  unsigned threads = 2;
  /// How many changes of each resource are remembered: how far behind a watch may be.
  std::size_t history = 10000;
  /// Where resourceVersions begin in memory. 0: at a number that grows with time faster than any
  /// server counts, so that those of an earlier run have expired.
  std::uint64_t first_revision = 0;
  /// Where objects are kept; null: in memory, of this server alone.
  LOOKOUT_OPTION std::shared_ptr<storage::Backend> storage = nullptr;

  std::size_t max_connections = 20000;
  std::size_t max_header_bytes = 64u << 10;
  std::size_t max_body_bytes = 3u << 20;
  /// For a request's head to come in once it has begun, and for its body.
  std::chrono::milliseconds header_timeout{15000};
  std::chrono::milliseconds body_timeout{60000};
  /// For a connection on which nothing happens.
  std::chrono::milliseconds idle_timeout{180000};
  /// For a client to take what it is sent.
  std::chrono::milliseconds write_timeout{60000};
  /// Watches that do not say how long they want to last end after this long to twice as long.
  std::chrono::milliseconds min_watch_timeout{std::chrono::minutes(30)};
  std::chrono::milliseconds bookmark_interval{std::chrono::minutes(1)};
  /// How long a request or a watch waits for a resourceVersion that lies in the future, before it
  /// fails: the resourceVersion is too large (504).
  std::chrono::milliseconds future_wait{3000};
  /// Where services get their cluster IPs from: an IPv4 range.
  LOOKOUT_OPTION std::string service_cluster_ip_range = "10.0.0.0/16";
  /// Where webhooks are that name a service. Without an answer of it, the server takes a ready
  /// endpoint of the service's EndpointSlices, or else the service's cluster IP.
  LOOKOUT_OPTION ServiceResolver resolve_service = nullptr;
  /// After a stop is requested, the server goes on serving for this long, while /readyz says that
  /// it is no longer ready: time for load balancers to notice.
  std::chrono::milliseconds shutdown_delay{0};
};

/// Counts since the start, and what is now.
struct ServerStats {
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;  ///< requests that were answered with a Status of failure
  std::uint64_t lists = 0;
  std::uint64_t watches_started = 0;
  std::int64_t watches = 0;          ///< that are open now
  std::uint64_t events_sent = 0;     ///< to all watches together
  std::uint64_t events_encoded = 0;  ///< fewer: an event is encoded once for many watches
  std::uint64_t slow_watchers = 0;   ///< watches that were ended since nobody read them
  std::size_t connections = 0;       ///< that are open now
};

/// Speaks enough of the Kubernetes API for kubectl, client-go and any other client: discovery, all
/// built-in resources, custom resources by CustomResourceDefinitions; create, get, list, watch,
/// update, patch, delete, with the semantics and the messages of kube-apiserver.
///
///     apiserver::Server server;
///     rest::Client client(server.client_config());
///
/// There is no controller manager, no scheduler and no node behind it: objects are kept, nothing is
/// run. The server itself empties namespaces that are deleted, and deletes the instances of deleted
/// definitions, pods at the end of their grace period, and objects whose owners have gone.
///
/// Without a token file and a client CA, everybody may do everything, save web pages in somebody's
/// browser: a Host that is neither an address nor "localhost" nor allowed, an Origin or a
/// Sec-Fetch-Site from elsewhere, and a body without a Content-Type are refused (403, 415). With
/// one of them, requests without credentials are refused, and everybody else may do everything,
/// also in the name of others (Impersonate-User and the like).
///
/// Any number of servers may be in a process. All functions may be called from any thread, but
/// stop() and the destructor not from one of the server's own.
class Server {
 public:
  /// Serves when it returns. Throws lookout::Error if the address cannot be had or a file cannot be
  /// used.
  explicit Server(ServerOptions options = {});
  /// As stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "http://127.0.0.1:40123".
  std::string url() const;
  std::uint16_t port() const;

  /// The configuration of a client in this process: the address, the certificate, and credentials
  /// of a privileged user if the server asks for some.
  rest::Config client_config() const;

  /// The objects themselves, past all rules of the API: for simulations and measurements.
  storage::Backend& storage() const;

  ServerStats stats() const;

  /// Ends watches, lets requests come to their end (for up to `grace`, then they are cut off), and
  /// ends all threads. Doing it again meanwhile ends the shutdown_delay, and does nothing else.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver
