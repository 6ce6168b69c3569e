#include "lookout/apiserver/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "apiserver/admission/hook_registry.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/webhook_admission.h"
#include "apiserver/audit/audit_log.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/impersonation.h"
#include "apiserver/auth/rbac_authorizer.h"
#include "apiserver/auth/role_follower.h"
#include "apiserver/bootstrap/api_services.h"
#include "apiserver/bootstrap/bootstrap.h"
#include "apiserver/bootstrap/flow_control.h"
#include "apiserver/bootstrap/service_availability.h"
#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/definition_names.h"
#include "apiserver/controllers/own_writes.h"
#include "apiserver/controllers/quota_controller.h"
#include "apiserver/controllers/role_aggregation.h"
#include "apiserver/endpoints/api_handler.h"
#include "apiserver/endpoints/resource_handler.h"
#include "apiserver/metrics.h"
#include "apiserver/quota/namespace_limits.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/resource_registry.h"
#include "apiserver/resources/service_allocator.h"
#include "apiserver/resources/store.h"
#include "apiserver/webhooks/webhook_client.h"
#include "lookout/apiserver/storage/error.h"
#include "lookout/apiserver/storage/memory.h"
#include "lookout/base/async_event.h"
#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/http/server.h"
#include "lookout/base/http/transport.h"
#include "lookout/base/processors.h"

namespace lookout::apiserver {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kMaintenance{5};
/// How often objects are counted, as in kube-apiserver.
constexpr std::chrono::minutes kCounting{1};
/// How often the allocations of services are repaired, as in kube-apiserver.
constexpr std::chrono::minutes kRepair{3};
/// The initial and the maximum delay before a task restarts.
constexpr std::chrono::milliseconds kPause{500};
constexpr std::chrono::milliseconds kLongestPause{8000};
/// The maximum time to fill the caches, and to create the initial objects, at the start.
constexpr std::chrono::seconds kPatience{30};

/// True if a write may succeed later, because the storage did not respond.
bool is_temporary(const Error& e) {
  using Code = storage::StorageError::Code;
  if (const auto* storage = dynamic_cast<const storage::StorageError*>(&e))
    return storage->code() == Code::kUnreachable || storage->code() == Code::kTimeout;
  return api::is_server_timeout(e) || api::is_timeout(e) || api::is_service_unavailable(e) ||
         api::is_too_many_requests(e);
}

/// Runs a coroutine to its end on this thread.
void run(Awaitable<void> task) {
  asio::io_context context;
  std::exception_ptr failure;
  asio::co_spawn(context, std::move(task), [&](std::exception_ptr error) { failure = error; });
  context.run();
  if (failure) std::rethrow_exception(failure);
}

std::shared_ptr<storage::Backend> backend_of(const ServerOptions& options) {
  if (options.storage != nullptr) return options.storage;
  storage::MemoryOptions memory;
  memory.history = options.history;
  memory.future_wait = options.future_wait;
  memory.first_revision = options.first_revision != 0
                              ? options.first_revision
                              : storage::revision_of_time(std::chrono::system_clock::now());
  return std::make_shared<storage::MemoryBackend>(memory);
}

/// The tokens of the file, and one for clients in this process.
auth::AuthenticatorOptions authenticator_options(const ServerOptions& options,
                                                 const std::string& own) {
  auth::AuthenticatorOptions out;
  out.certificates = !options.client_ca_file.empty();
  out.refuses_unknown_tokens = options.authorization == Authorization::kRbac;
  if (options.token_file.empty() && !out.certificates) return out;
  out.tokens.emplace();
  if (!options.token_file.empty()) out.tokens = auth::TokenTable::from_file(options.token_file);
  out.tokens->add(own, {"system:apiserver", own.substr(0, 8), {"system:masters"}});
  return out;
}

auth::TokenObjects token_objects(const resources::ResourceTable& table) {
  return {table.find("", "v1", "serviceaccounts"), table.find("", "v1", "pods"),
          table.find("", "v1", "secrets"), table.find("", "v1", "nodes")};
}

/// The certificates that clients in the cluster trust; empty without TLS.
std::string own_certificates(const ServerOptions& options) {
  std::string out;
  if (options.tls_cert_file.empty()) return out;
  for (const std::string& one : bootstrap::certificates_in(options.tls_cert_file)) out += one;
  return out;
}

/// The first address of an IPv4 range such as 10.0.0.0/16 that a service may have.
std::string first_address(const std::string& range) {
  const auto network = asio::ip::make_network_v4(range);
  return asio::ip::address_v4(network.network().to_uint() + 1).to_string();
}

std::unique_ptr<audit::AuditLog> make_audit_log(const ServerOptions& options) {
  if (options.audit_log_file.empty() || options.audit_level == AuditLevel::kNone) return nullptr;
  return std::make_unique<audit::AuditLog>(options.audit_log_file, options.audit_level);
}

http::ServerOptions http_options(const ServerOptions& options) {
  http::ServerOptions out;
  out.listens = options.listens;
  out.address = options.address;
  out.port = options.port;
  out.threads = options.threads != 0 ? options.threads : usable_processors();
  out.max_connections = options.max_connections;
  out.max_connections_per_address = options.max_connections_per_address;
  out.limits.max_header_bytes = options.max_header_bytes;
  out.limits.max_body_bytes = options.max_body_bytes;
  out.limits.header_timeout = options.header_timeout;
  out.limits.body_timeout = options.body_timeout;
  out.limits.idle_timeout = options.idle_timeout;
  out.limits.write_timeout = options.write_timeout;
  const bool tls = !options.tls_cert_file.empty();
  if (tls != !options.tls_key_file.empty()) throw Error("TLS needs both a certificate and its key");
  if (!tls && !options.client_ca_file.empty())
    throw Error("client certificates need TLS: a certificate and a key of the server");
  if (tls)
    out.tls =
        http::make_tls_context(options.tls_cert_file, options.tls_key_file, options.client_ca_file);
  return out;
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : options_(std::move(options)),
        plugins_(admission::choose_plugins(options_.enable_admission_plugins,
                                           options_.disable_admission_plugins)),
        own_token_(resources::new_uid() + resources::new_uid()),
        backend_(backend_of(options_)),
        resources_(*backend_),
        store_(resources_.table()->find("", "v1", "namespaces")),
        services_(store_, resources_.table()->find("networking.k8s.io", "v1", "ipaddresses"),
                  backend_->resource("ranges"), options_.service_cluster_ip_range,
                  options_.managed_fields),
        limits_(resources_),
        quotas_(context_, limits_),
        names_(context_),
        signer_(options_.service_account_key_file, options_.service_account_issuer),
        authenticator_(authenticator_options(options_, own_token_), signer_,
                       token_objects(*resources_.table())),
        roles_(resources_, rbac_),
        aggregation_(
            context_,
            [this](const api::Object& role) { rbac_.put(auth::RbacKind::kClusterRole, role); }),
        hooks_(resources_),
        webhook_client_({resources_.table()->find("", "v1", "services"),
                         resources_.table()->find("discovery.k8s.io", "v1", "endpointslices")},
                        options_.resolve_service),
        webhooks_{hooks_, webhook_client_, counters_->metrics->webhooks(),
                  resources_.table()->find("", "v1", "namespaces")},
        resource_handler_(resources_, store_, webhooks_, authenticator_, authorizer(),
                          consequences(), {options_.min_watch_timeout, options_.bookmark_interval},
                          options_.managed_fields, counters_),
        health_(*backend_),
        audit_log_(make_audit_log(options_)),
        api_(resources_, resource_handler_, authenticator_, authorizer(), health_,
             {options_.max_body_bytes, options_.allowed_hosts, options_.max_requests_per_user,
              options_.max_requests_per_address, audit_log_.get(), options_.before_request,
              options_.after_request},
             counters_),
        http_(
            http_options(options_),
            [this](http::Request request) { return api_.handle(std::move(request)); },
            [this](int status, const std::string& message) {
              return api_.broken_request(status, message);
            },
            [this](const http::Request& head) { return api_.refuse(head); }) {
    api_.set_server_address(
        scheme(), fmt::format("{}:{}", http::host_for_clients(options_.address), http_.port()));
    store_.allocate_services(&services_);
    store_.admit_priorities(resources_.table()->find("scheduling.k8s.io", "v1", "priorityclasses"));
    if (plugins_.service_account)
      store_.admit_service_accounts(resources_.table()->find("", "v1", "serviceaccounts"));
    store_.limit_namespaces(&limits_);
    limits_.on_stale([this](const std::string& ns) { quotas_.mark(ns); });
    resources_.convert_with(&webhook_client_);
    run(prepare());
    spawn("custom resources",
          [this] { return resources_.follow([this] { return names_.settle(); }); });
    spawn("mutating webhooks", [this] { return hooks_.follow_mutating(); });
    spawn("validating webhooks", [this] { return hooks_.follow_validating(); });
    controllers::begin_namespace_controller(context_);
    controllers::begin_definition_controller(context_);
    if (plugins_.service_account)
      controllers::begin_service_account_controllers(context_, own_certificates(options_));
    spawn("pods", [this] { return controllers::run_pod_reaper(context_); });
    spawn("claims", [this] { return controllers::run_claim_protection(context_); });
    spawn("volumes", [this] { return controllers::run_volume_protection(context_); });
    spawn("classes of attributes",
          [this] { return controllers::run_attributes_class_protection(context_); });
    quotas_.begin();
    spawn("owners", [this] { return controllers::run_garbage_collector(context_); });
    spawn("services", [this] { return keep_repairing_services(); });
    spawn("maintenance", [this] { return maintain(); });
    spawn("counts of objects", [this] { return count_objects(); });
    follow_roles();
    follow_bootstrap();
    http_.start();
    log::debug("API server listens on {}", url());
  }

  void stop(std::chrono::milliseconds grace) {
    if (stopped_.exchange(true)) {
      const std::lock_guard lock(mutex_);
      in_a_hurry_ = true;
      hurry_.notify_all();
      return;
    }
    // /readyz fails first, so that clients switch to other servers.
    health_.begin_shutdown();
    {
      std::unique_lock lock(mutex_);
      hurry_.wait_for(lock, Clock::limited(options_.shutdown_delay), [&] { return in_a_hurry_; });
    }
    end_tasks();
    if (!http_.drain(grace)) http_.cut_off();
    // The client refers to the executors of its callers, so it must shut down before their threads
    // end.
    webhook_client_.shutdown();
    http_.stop(grace);
  }

  std::string url() const {
    return fmt::format("{}://{}:{}", scheme(), http::host_for_clients(options_.address),
                       http_.port());
  }

 private:
  friend class Server;

  const char* scheme() const { return options_.tls_cert_file.empty() ? "http" : "https"; }

  Awaitable<void> prepare() {
    // Throws the storage's error, if any.
    co_await backend_->current_revision();
    co_await wait_for_caches();
    if (has_bootstrap()) {
      api_services_.emplace(context_);
      flow_control_.emplace(context_);
    }
    // A storage that has just started may elect a leader, and fail writes meanwhile.
    AsyncEvent bell(co_await asio::this_coro::executor);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    for (bool done = false; !done;) {
      try {
        co_await create_initial_objects();
        done = true;
      } catch (const Error& e) {
        if (!is_temporary(e) || std::chrono::steady_clock::now() >= until) throw;
        log::warn("API server: creating the initial objects again: {}", e.what());
      }
      if (!done) co_await bell.wait(std::chrono::steady_clock::now() + kPause);
    }
    if (is_rbac()) co_await roles_.load();
  }

  /// May be repeated after a failure.
  Awaitable<void> create_initial_objects() {
    for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
      co_await create_once("", "v1", "namespaces",
                           fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
    }
    co_await create_once(
        "networking.k8s.io", "v1", "servicecidrs",
        fmt::format(R"({{"metadata":{{"name":"kubernetes"}},"spec":{{"cidrs":["{}"]}}}})",
                    services_.range()));
    co_await create_once("scheduling.k8s.io", "v1", "priorityclasses",
                         R"({"metadata":{"name":"system-cluster-critical"},"value":2000000000,)"
                         R"("description":"Used for system critical pods that must run in the )"
                         R"(cluster, but can be moved to another node if necessary."})");
    co_await create_once("scheduling.k8s.io", "v1", "priorityclasses",
                         R"({"metadata":{"name":"system-node-critical"},"value":2000001000,)"
                         R"("description":"Used for system critical pods that must not be moved )"
                         R"(from their current node."})");
    co_await bootstrap::settle_service_range(context_);
    resources::ServiceAllocator::LeakedPorts leaked;
    co_await repair_services(leaked);
    if (has_bootstrap()) co_await bootstrap();
  }

  /// A fault in the storage, such as an unreadable service, does not keep the server from starting, and
  /// releases nothing.
  Awaitable<void> repair_services(resources::ServiceAllocator::LeakedPorts& leaked) {
    try {
      auto services = resources_.table()->find("", "v1", "services");
      co_await services_.repair(std::move(services), leaked);
    } catch (const Error& e) {
      if (is_temporary(e)) throw;
      log::warn("cannot check the allocations of services: {}", e.what());
    }
  }

  Awaitable<void> keep_repairing_services() {
    AsyncEvent bell(co_await asio::this_coro::executor);
    resources::ServiceAllocator::LeakedPorts leaked;
    for (;;) {
      co_await bell.wait(std::chrono::steady_clock::now() + kRepair);
      co_await repair_services(leaked);
    }
  }

  bool is_rbac() const { return options_.authorization == Authorization::kRbac; }
  bool has_bootstrap() const { return options_.bootstrap.value_or(is_rbac()); }

  const auth::Authorizer& authorizer() const {
    if (is_rbac()) return rbac_;
    return allow_authenticated_;
  }

  Awaitable<void> bootstrap() {
    const controllers::Context& context = context_;
    co_await bootstrap::reconcile_policy(context);
    co_await api_services_->settle_builtin();
    co_await flow_control_->settle();
    if (!options_.client_ca_file.empty())
      co_await bootstrap::publish_client_ca(context, options_.client_ca_file);
    co_await aggregation_.settle();
    if (!options_.listens) co_return;
    std::string ip = first_address(services_.range());
    std::string address = http::host_for_clients(options_.address);
    if (address.starts_with('[')) address = address.substr(1, address.size() - 2);
    co_await bootstrap::create_kubernetes_service(context, std::move(ip), std::move(address),
                                                  http_.port(), !options_.tls_cert_file.empty());
  }

  void follow_roles() {
    if (has_bootstrap()) spawn("aggregated roles", [this] { return aggregation_.follow(); });
    if (!is_rbac()) return;
    for (const auto& [name, kind] :
         {std::pair("roles", auth::RbacKind::kRole),
          std::pair("cluster roles", auth::RbacKind::kClusterRole),
          std::pair("role bindings", auth::RbacKind::kRoleBinding),
          std::pair("cluster role bindings", auth::RbacKind::kClusterRoleBinding)})
      spawn(name, [this, kind = kind] { return roles_.follow(kind); });
  }

  void follow_bootstrap() {
    if (!has_bootstrap()) return;
    spawn("flow schemas", [this] { return flow_control_->follow_schemas(); });
    spawn("priority levels", [this] { return flow_control_->follow_levels(); });
    spawn("API services", [this] { return api_services_->follow_services(); });
    spawn("API services of definitions", [this] { return api_services_->follow_definitions(); });
    spawn("available API services", [this] { return availability_.follow_api_services(); });
    spawn("services of API services", [this] { return availability_.follow_services(); });
    spawn("endpoints of API services", [this] { return availability_.follow_endpoints(); });
  }

  endpoints::Consequences consequences() {
    return {[this](const resources::ServedResourcePtr& resource, const api::Object& object,
                   bool gone) { return note_write(resource, object, gone); }};
  }

  /// Applies a written role, binding, quota, limit range or definition, so that it is in effect for
  /// the client's next request.
  Awaitable<void> note_write(resources::ServedResourcePtr resource, api::Object object, bool gone) {
    limits_.note(*resource, object);
    const bool is_quota = resource->type.group.empty() && resource->type.plural == "resourcequotas";
    if (is_quota && !gone) {
      std::string ns(object.ns());
      co_await limits_.settle(std::move(ns));
    }
    const bool is_definition = resource->type.group == "apiextensions.k8s.io" &&
                               resource->type.plural == "customresourcedefinitions";
    if (is_definition) co_await names_.settle();
    if (!is_rbac() && !has_bootstrap()) co_return;
    if (gone) {
      roles_.removed(*resource, object);
    } else {
      roles_.written(*resource, object);
    }
    const bool is_role = resource->type.group == "rbac.authorization.k8s.io" &&
                         resource->type.plural == "clusterroles";
    if (is_role && has_bootstrap()) co_await aggregation_.settle();
  }

  /// Waits until the watch caches are filled; until then, they reject requests (429).
  Awaitable<void> wait_for_caches() {
    AsyncEvent bell(co_await asio::this_coro::executor);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      try {
        co_await resources_.refresh();
        co_await hooks_.refresh();
        co_return;
      } catch (const api::StatusError& e) {
        const bool again = api::is_too_many_requests(e);
        if (!again || std::chrono::steady_clock::now() >= until) throw;
      }
      co_await bell.wait(std::chrono::steady_clock::now() + kPause);
    }
  }

  Awaitable<void> create_once(std::string group, std::string version, std::string plural,
                              std::string json) {
    resources::Target target;
    target.resource = resources_.table()->find(group, version, plural);
    api::Object object = api::Object::parse(json);
    target.name = object.name();
    co_await controllers::create_once(context_, std::move(target), std::move(object),
                                      controllers::kServerManager);
  }

  Awaitable<void> maintain() {
    AsyncEvent bell(co_await asio::this_coro::executor);
    for (;;) {
      co_await bell.wait(std::chrono::steady_clock::now() + kMaintenance);
      backend_->maintain();
    }
  }

  Awaitable<void> count_objects() {
    AsyncEvent bell(co_await asio::this_coro::executor);
    for (;;) {
      try {
        co_await api_.count_objects();
      } catch (const lookout::Error& e) {
        log::debug("cannot count objects: {}", e.what());
      }
      co_await bell.wait(std::chrono::steady_clock::now() + kCounting);
    }
  }

  /// Restarts a controller whenever it ends, because a remote storage may end a watch or be
  /// unavailable for a while.
  static Awaitable<void> keep_running(std::string name, controllers::MakeTask make) {
    AsyncEvent bell(co_await asio::this_coro::executor);
    auto pause = kPause;
    for (;;) {
      const auto begin = std::chrono::steady_clock::now();
      std::string why = "a watch ended";
      try {
        co_await make();
      } catch (const controllers::TaskIsOver&) {
        co_return;
      } catch (const boost::system::system_error& e) {
        if (e.code() == asio::error::operation_aborted) throw;
        why = e.what();
      } catch (const std::exception& e) {
        why = e.what();
      }
      log::warn("restarting controller {}: {}", name, why);
      const auto now = std::chrono::steady_clock::now();
      if (now - begin > kLongestPause) pause = kPause;
      co_await bell.wait(now + pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  }

  void spawn(std::string name, controllers::MakeTask make) {
    auto& signal = signals_.emplace_back();
    {
      const std::lock_guard lock(mutex_);
      ++tasks_;
    }
    const auto done = [this, name](const std::exception_ptr& error) {
      try {
        if (error) std::rethrow_exception(error);
      } catch (const boost::system::system_error& e) {
        if (e.code() != asio::error::operation_aborted)
          log::error("controller {} ended: {}", name, e.what());
      } catch (const std::exception& e) {
        log::error("controller {} ended: {}", name, e.what());
      }
      const std::lock_guard lock(mutex_);
      if (--tasks_ == 0) no_tasks_.notify_all();
    };
    asio::co_spawn(http_.executor(), keep_running(name, std::move(make)),
                   asio::bind_cancellation_slot(signal.slot(), done));
  }

  /// Ends the controllers' tasks, so that no storage watches are open when the threads end.
  void end_tasks() {
    asio::post(http_.executor(), [this] {
      ending_ = true;
      for (auto& signal : signals_) signal.emit(asio::cancellation_type::terminal);
    });
    std::unique_lock lock(mutex_);
    no_tasks_.wait_for(lock, std::chrono::seconds(5), [&] { return tasks_ == 0; });
  }

  const ServerOptions options_;
  const admission::Plugins plugins_;
  const std::string own_token_;
  const std::shared_ptr<storage::Backend> backend_;
  const std::shared_ptr<Counters> counters_ =
      std::make_shared<Counters>(std::make_shared<Metrics>());
  resources::ResourceRegistry resources_;
  resources::Store store_;
  const resources::ServiceAllocator services_;
  const controllers::Spawn spawn_ = [this](std::string name, controllers::MakeTask make) {
    if (!ending_) spawn(std::move(name), std::move(make));
  };
  const controllers::Context context_{resources_, store_, spawn_, options_.managed_fields};
  quota::NamespaceLimits limits_;
  controllers::QuotaController quotas_;
  const controllers::DefinitionNames names_;
  const auth::TokenSigner signer_;
  auth::Authenticator authenticator_;
  const auth::AllowAuthenticated allow_authenticated_;
  auth::RbacAuthorizer rbac_;
  auth::RoleFollower roles_;
  const controllers::RoleAggregation aggregation_;
  /// Set only if the server creates the bootstrap objects.
  std::optional<bootstrap::ApiServices> api_services_;
  std::optional<bootstrap::FlowControl> flow_control_;
  admission::HookRegistry hooks_;
  webhooks::WebhookClient webhook_client_;
  bootstrap::ServiceAvailability availability_{context_, webhook_client_};
  const admission::Webhooks webhooks_;
  const endpoints::ResourceHandler resource_handler_;
  endpoints::Health health_;
  const std::unique_ptr<audit::AuditLog> audit_log_;
  endpoints::ApiHandler api_;
  std::list<asio::cancellation_signal> signals_;
  std::mutex mutex_;
  std::condition_variable no_tasks_;
  std::condition_variable hurry_;
  bool in_a_hurry_ = false;
  int tasks_ = 0;
  /// On the controllers' thread.
  bool ending_ = false;
  std::atomic<bool> stopped_{false};
  // Last: its threads use the members above.
  http::Server http_;
};

Server::Server(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Server::~Server() { stop(); }
std::string Server::url() const { return impl_->url(); }
std::uint16_t Server::port() const { return impl_->http_.port(); }
void Server::connect(
    std::function<std::unique_ptr<http::Transport>(boost::asio::any_io_executor)> make) {
  impl_->http_.connect(std::move(make));
}
storage::Backend& Server::storage() const { return *impl_->backend_; }
void Server::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

rest::Config Server::client_config() const {
  rest::Config config;
  config.server = url();
  if (!impl_->options_.tls_cert_file.empty()) config.ca_file = impl_->options_.tls_cert_file;
  if (impl_->authenticator_.demands_credentials()) config.bearer_token = impl_->own_token_;
  return config;
}

rest::Config Server::config_for(const std::string& user, std::vector<std::string> groups) const {
  for (std::string& group : auth::implied_groups(user)) groups.push_back(std::move(group));
  rest::Config config = client_config();
  config.bearer_token = impl_->authenticator_.issue({user, "", std::move(groups)});
  return config;
}

rest::Config Server::config_for_service_account(const std::string& ns,
                                                const std::string& name) const {
  return config_for(auth::name_of_account(ns, name));
}

ServerStats Server::stats() const {
  const Counters& counters = *impl_->counters_;
  ServerStats out;
  out.requests = counters.requests;
  out.failures = counters.failures;
  out.lists = counters.lists;
  out.watches_started = counters.watches_started;
  out.watches = counters.watches;
  out.events_sent = counters.events_sent;
  out.events_encoded = counters.events_encoded;
  out.slow_watchers = counters.slow_watchers;
  out.connections = impl_->http_.connections();
  return out;
}

}  // namespace lookout::apiserver
