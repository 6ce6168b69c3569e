#include "lookout/controller/webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "controller/certificate_watcher.h"
#include "controller/own_run.h"
#include "controller/waiting.h"
#include "controller/webhook_conversion.h"
#include "controller/webhook_review.h"
#include "lookout/base/alarm.h"
#include "lookout/base/ascii.h"
#include "lookout/base/async_event.h"
#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/http/server.h"
#include "lookout/base/numbers.h"
#include "lookout/informer/handler_pool.h"

namespace lookout::controller {
namespace {

namespace asio = boost::asio;
using api::StatusError;
using detail::AdmissionHook;
using detail::Conversions;

constexpr std::string_view kConvertPath = "/convert";

/// controller-runtime's buckets: 10 ns, 100 ns ... 1000 s.
constexpr std::array<double, 12> kLatencyBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                                    1e-2, 1e-1, 1e0,  1e1,  1e2,  1e3};

/// The time for the last responses to reach their clients.
constexpr std::chrono::seconds kGoodbye{1};
/// The share of the manager's stop time for handlers that are being stopped and for the last responses.
constexpr std::chrono::seconds kReserve{3};

/// Manager::stop_time_left(); always empty without a manager.
using TimeLeft = std::function<std::optional<Clock::Duration>()>;

http::Response failure(const StatusError& error) {
  http::Response out;
  out.status = error.code();
  const api::Object status = error.status().to_object();
  out.body = status.to_json();
  return out;
}

StatusError error_of(int code, std::string_view reason, std::string message) {
  api::Status status;
  status.code = code;
  status.reason = std::string(reason);
  status.message = std::move(message);
  return StatusError(std::move(status));
}

StatusError too_large(std::size_t limit) {
  return StatusError::request_entity_too_large(
      fmt::format("request entity is too large; limit is {} bytes", limit));
}

/// A call that comes when the server is being stopped. This is no decision about the object: as for a
/// server that is gone, the API server applies the webhook's failurePolicy.
class Stopping : public StatusError {
 public:
  Stopping() : StatusError(service_unavailable("the webhook server is being stopped")) {}
};

/// "/validate-example-com-v1-website".
std::string generated_path(std::string_view verb, const api::Resource& resource) {
  std::string group = resource.group;
  std::replace(group.begin(), group.end(), '.', '-');
  return fmt::format("/{}-{}-{}-{}", verb, group, resource.version,
                     base::lower_case(resource.kind));
}

bool is_path(std::string_view path) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
  return path.starts_with('/') && path.find("//") == std::string_view::npos &&
         path.find_first_not_of(kAllowed) == std::string_view::npos;
}

/// How long the API server waits for the response: the parameter "?timeout=10s".
std::optional<std::chrono::seconds> timeout_of(const http::Request& request) {
  const auto text = request.parameter("timeout");
  if (!text || !text->ends_with('s')) return std::nullopt;
  const auto seconds = base::parse_number<unsigned>(text->substr(0, text->size() - 1));
  constexpr unsigned kLongest = 3600;
  if (!seconds || *seconds == 0 || *seconds > kLongest) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

/// The error in the kind of an object; empty if there is none.
std::string wrong_kind(const api::Resource& wanted, const api::Object& object) {
  if (!object || wanted.kind.empty() || object.gvk() == wanted.gvk()) return {};
  return fmt::format("this webhook is for {}, not for {}", wanted.gvk().to_string(),
                     object.gvk().to_string());
}

/// True if a validating webhook of one kind receives a CONNECT: its object is not of the resource, but the
/// options of the call, such as PodExecOptions.
bool is_foreign_connect(const AdmissionHook& hook, const Admission<api::Object>& admission) {
  return admission.operation == Operation::kConnect && !hook.mutates && !hook.type.kind.empty() &&
         (!admission.object || admission.object.gvk() != hook.type.gvk());
}

/// The handler of a path.
struct Target {
  explicit Target(std::string name) : path(std::move(name)) {}

  const std::string path;
  /// Empty: conversion.
  std::optional<AdmissionHook> hook;
  std::atomic<int> in_flight{0};
  metrics::Histogram seconds{kLatencyBuckets};

  void count(int code) {
    const std::lock_guard lock(mutex_);
    ++answers_[code];
  }
  std::map<int, std::uint64_t> counted() const {
    const std::lock_guard lock(mutex_);
    return answers_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, std::uint64_t> answers_{{200, 0}, {500, 0}};  // guarded by mutex_
};

class InFlight {
 public:
  explicit InFlight(Target& target) : target_(target) { ++target_.in_flight; }
  ~InFlight() {
    --target_.in_flight;
    target_.seconds.observe(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count());
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  Target& target_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// A call that a coroutine awaits.
struct Call {
  explicit Call(const asio::any_io_executor& executor) : event(executor) {}
  AsyncEvent event;
  std::exception_ptr error;
  std::atomic<bool> done{false};
};

}  // namespace

class WebhookServer::Impl : public metrics::Source {
 public:
  Impl(std::shared_ptr<EventLoop> loop, WebhookOptions options, TimeLeft time_left)
      : options_(std::move(options)),
        time_left_(std::move(time_left)),
        loop_(std::move(loop)),
        pool_(loop_, pool_options()) {
    if (!options_.plain_http) {
      certificates_ = std::make_unique<detail::CertificateWatcher>(
          "webhook server", file(options_.cert_name), file(options_.key_name),
          options_.client_ca_name.empty() ? std::string() : file(options_.client_ca_name));
    }
    const auto answer = [this](http::Request request) { return serve(std::move(request)); };
    const auto unreadable = [this](int status, const std::string& message) {
      constexpr int kTooLarge = 413;
      if (status == kTooLarge) return failure(too_large(max_body_bytes()));
      return failure(error_of(status, api::reason::kBadRequest, message));
    };
    const auto look = [this](const http::Request& head) -> std::optional<http::Response> {
      const auto target = find(head.path);
      auto error = refuse(target.get(), head);
      if (!error) return std::nullopt;
      if (target) target->count(error->code());
      return failure(*error);
    };
    server_ = std::make_unique<http::Server>(server_options(), answer, unreadable, look);
  }

  ~Impl() override = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void add(std::string path, AdmissionHook hook) {
    if (!is_path(path))
      throw InvalidArgument(fmt::format("\"{}\" is not a valid path for a webhook", path));
    if (path == kConvertPath) {
      throw InvalidArgument(fmt::format(
          "{} is the path of conversions: an admission webhook needs another one", path));
    }
    if (std::visit([](const auto& function) { return !function; }, hook.function))
      throw InvalidArgument(fmt::format("the webhook at {} has no handler: it is empty", path));
    const auto target = std::make_shared<Target>(std::move(path));
    target->hook = std::move(hook);
    put(target);
  }

  void add(detail::Spoke spoke) {
    conversions_.add(std::move(spoke));
    const std::lock_guard lock(mutex_);
    auto& target = targets_[std::string(kConvertPath)];
    if (!target) target = std::make_shared<Target>(std::string(kConvertPath));
  }

  std::uint16_t port() const { return server_->port(); }
  EventLoop& loop() const { return *loop_; }
  const std::shared_ptr<detail::OwnRun>& own_run() const { return own_run_; }

  std::optional<std::string> check() const {
    if (!started_) return "webhook server has not been started yet";
    const std::string problem = connect();
    if (!problem.empty()) return "webhook server is not reachable: " + problem;
    return std::nullopt;
  }

  Awaitable<void> run(std::stop_token stop) {
    if (begun_.exchange(true)) throw InvalidArgument("a webhook server can run only once");
    server_->start();
    started_ = true;
    log::info("webhook server: serves on port {}", port());
    const auto clock = Clock::real();
    while (!stop.stop_requested()) {
      if (certificates_) {
        // Not in the pool, whose threads may all be blocked by handlers.
        const std::function<void()> look = [this] { certificates_->poll(); };
        co_await detail::on_thread(clock, look);
      }
      co_await clock->sleep(std::chrono::seconds(1), stop);
    }
    const auto delay = within_the_stop(options_.drain_delay, std::chrono::seconds(0));
    if (delay.count() > 0) co_await clock->sleep(delay, std::stop_token());
    const std::function<void()> finish = [this] { end(); };
    co_await detail::on_thread(clock, finish);
  }

  void collect(std::vector<metrics::Sample>& out) const override {
    std::map<std::string, std::shared_ptr<Target>, std::less<>> targets;
    {
      const std::lock_guard lock(mutex_);
      targets = targets_;
    }
    for (const auto& [path, target] : targets) {
      metrics::Collector collector(out, {{"webhook", path}});
      collector.histogram("controller_runtime_webhook_latency_seconds",
                          "Histogram of the latency of processing admission requests",
                          target->seconds);
      collector.gauge("controller_runtime_webhook_requests_in_flight",
                      "Current number of admission requests being served.",
                      target->in_flight.load());
      for (const auto& [code, count] : target->counted()) {
        metrics::Collector with_code(out, {{"webhook", path}, {"code", std::to_string(code)}});
        with_code.counter("controller_runtime_webhook_requests_total",
                          "Total number of admission requests by HTTP status code.",
                          static_cast<double>(count));
      }
    }
    metrics::Collector collector(out, {});
    collector.counter("controller_runtime_webhook_panics_total", "Total number of webhook panics",
                      panics_);
    collector.counter("controller_runtime_conversion_webhook_panics_total",
                      "Total number of conversion webhook panics",
                      static_cast<double>(conversions_.panics()));
    if (certificates_) certificates_->collect(out);
  }

 private:
  // ------------------------------------------------------------------------------ options

  informer::HandlerPoolOptions pool_options() const {
    informer::HandlerPoolOptions out;
    out.max_threads = std::max(options_.max_threads, out.threads);
    return out;
  }

  std::size_t max_body_bytes() const {
    return std::max(options_.max_admission_bytes, options_.max_conversion_bytes);
  }

  std::string file(const std::string& name) const {
    const std::filesystem::path folder =
        options_.cert_dir.empty()
            ? std::filesystem::temp_directory_path() / "k8s-webhook-server" / "serving-certs"
            : std::filesystem::path(options_.cert_dir);
    return (folder / name).string();
  }

  http::ServerOptions server_options() const {
    http::ServerOptions out;
    out.address = http::address_of_host(options_.host);
    out.port = options_.port;
    out.limits.max_body_bytes = max_body_bytes();
    // As in controller-runtime's servers. Idle clients are disconnected after this time; a webhook may
    // take at most 30 s.
    out.limits.header_timeout = std::chrono::seconds(32);
    out.limits.body_timeout = std::chrono::seconds(32);
    out.limits.write_timeout = std::chrono::seconds(32);
    out.limits.idle_timeout = std::chrono::seconds(90);
    if (certificates_) out.tls = certificates_->context();
    return out;
  }

  // ------------------------------------------------------------------------------ paths

  void put(const std::shared_ptr<Target>& target) {
    const std::lock_guard lock(mutex_);
    if (!targets_.try_emplace(target->path, target).second)
      throw InvalidArgument(fmt::format("a webhook is already registered at {}", target->path));
  }

  std::shared_ptr<Target> find(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = targets_.find(path);
    return found == targets_.end() ? nullptr : found->second;
  }

  std::size_t limit_of(const Target& target) const {
    return target.hook ? options_.max_admission_bytes : options_.max_conversion_bytes;
  }

  /// The reason to reject a request, from its head only.
  std::optional<StatusError> refuse(const Target* target, const http::Request& request) const {
    constexpr int kNotFound = 404;
    constexpr int kMethodNotAllowed = 405;
    constexpr int kUnsupported = 415;
    if (target == nullptr)
      return error_of(kNotFound, api::reason::kNotFound, "there is no webhook at this path");
    if (request.method != "POST") {
      return error_of(kMethodNotAllowed, api::reason::kMethodNotAllowed,
                      "webhooks are called with POST");
    }
    const std::string_view type = request.header("content-type");
    if (base::lower_case(type.substr(0, type.find_first_of("; "))) != "application/json") {
      return error_of(kUnsupported, api::reason::kUnsupportedMediaType,
                      "the request's Content-Type is not application/json");
    }
    const auto size = base::parse_number<std::size_t>(request.header("content-length"));
    if (size && *size > limit_of(*target)) return too_large(limit_of(*target));
    return std::nullopt;
  }

  // ------------------------------------------------------------------------------ calls

  void begin_call() {
    const std::lock_guard lock(calls_mutex_);
    if (ending_) throw Stopping();
    ++calls_;
  }
  void end_call() {
    const std::lock_guard lock(calls_mutex_);
    if (--calls_ == 0) no_calls_.notify_all();
  }

  /// Wakes the coroutine that awaits a call; the call is destroyed soon after.
  void finish(Call& call, std::exception_ptr error) {
    {
      // Copy the event: the coroutine continues as soon as the call is done. It must end before the
      // call is uncounted, because its timer belongs to the server's thread.
      const AsyncEvent event = call.event;
      call.error = std::move(error);
      call.done = true;
      event.ring();
    }
    end_call();
  }

  /// Runs a blocking function and waits for it. The function does not outlive the wait.
  Awaitable<void> in_pool(std::function<void()> function) {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    Call call(executor);
    begin_call();
    pool_.post([this, &call, &function] {
      std::exception_ptr error;
      try {
        function();
      } catch (...) {
        error = std::current_exception();
      }
      finish(call, std::move(error));
    });
    while (!call.done) co_await call.event.wait();
    if (call.error) std::rethrow_exception(call.error);
  }

  static Awaitable<void> keep_result(const detail::AsyncAdmissionFunction& function,
                                     const Admission<api::Object>& request, api::Object& changed,
                                     AdmissionResponse& out) {
    AdmissionResponse result = co_await function(request, changed);
    out = std::move(result);
  }

  /// The same for a coroutine, which runs on the event loop.
  Awaitable<void> on_loop(const detail::AsyncAdmissionFunction& function,
                          const Admission<api::Object>& request, api::Object& changed,
                          AdmissionResponse& out) {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    Call call(executor);
    begin_call();
    asio::co_spawn(asio::make_strand(loop_->context()),
                   keep_result(function, request, changed, out),
                   [this, &call](std::exception_ptr error) { finish(call, std::move(error)); });
    while (!call.done) co_await call.event.wait();
    if (call.error) std::rethrow_exception(call.error);
  }

  /// The response for a handler that threw.
  AdmissionResponse thrown(const Target& target, const std::exception_ptr& error) {
    constexpr int kInternal = 500;
    try {
      std::rethrow_exception(error);
    } catch (const StatusError& e) {
      return denied(e);
    } catch (const std::exception& e) {
      log::error("webhook {} threw: {}", target.path, e.what());
    } catch (...) {
      log::error("webhook {} threw something that is not a std::exception", target.path);
    }
    ++panics_;
    AdmissionResponse out = errored(kInternal, "the webhook has failed; its log says why");
    out.status.reason = std::string(api::reason::kInternalError);
    return out;
  }

  // ------------------------------------------------------------------------------ answers

  Awaitable<http::Response> serve(http::Request request) {
    const std::shared_ptr<Target> target = find(request.path);
    const std::optional<StatusError> refused = refuse(target.get(), request);
    if (!target) co_return failure(*refused);
    http::Response response;
    {
      const InFlight in_flight(*target);
      std::exception_ptr error;
      try {
        if (refused) throw StatusError(*refused);
        if (request.body.empty()) throw StatusError::bad_request("request body is empty");
        if (request.body.size() > limit_of(*target)) throw too_large(limit_of(*target));
        if (target->hook) {
          response.body = co_await admit(*target, request);
        } else {
          const std::function<void()> convert = [&] {
            response.body = conversions_.answer(request.body);
          };
          co_await in_pool(convert);
        }
      } catch (...) {
        error = std::current_exception();
      }
      if (error) response = failure_of(*target, error);
    }
    target->count(response.status);
    co_return response;
  }

  static http::Response failure_of(const Target& target, const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const StatusError& e) {
      log::warn("webhook {}: a request was refused: {}", target.path, e.what());
      return failure(e);
    } catch (const std::exception& e) {
      log::error("webhook {}: {}", target.path, e.what());
      return failure(StatusError::internal_error("the webhook server has failed"));
    }
  }

  /// The body of the response.
  Awaitable<std::string> admit(Target& target, const http::Request& request) {
    const AdmissionHook& hook = *target.hook;
    Admission<api::Object> admission = detail::decode_admission_review(request.body);
    const auto call_stop = std::make_shared<std::stop_source>();
    admission.stop = call_stop->get_token();
    const auto end_call = [call_stop] { call_stop->request_stop(); };
    const std::stop_callback on_stop(stop_.get_token(), end_call);
    const std::stop_callback on_gone(request.gone, end_call);
    std::unique_ptr<Alarm> alarm;
    if (const auto timeout = timeout_of(request)) {
      const auto clock = Clock::real();
      alarm = std::make_unique<Alarm>(loop_, clock, end_call);
      alarm->set(clock->now() + *timeout);
    }

    AdmissionResponse out;
    if (is_foreign_connect(hook, admission))
      co_return detail::encode_admission_review(admission.uid, out, {});
    std::string problem = wrong_kind(hook.type, admission.object);
    if (problem.empty()) problem = wrong_kind(hook.type, admission.old_object);
    if (!problem.empty()) {
      constexpr int kBadRequest = 400;
      out = errored(kBadRequest, std::move(problem));
      co_return detail::encode_admission_review(admission.uid, out, {});
    }
    // A deletion cannot be patched.
    if (hook.mutates && !admission.object)
      co_return detail::encode_admission_review(admission.uid, out, {});

    api::Object changed = admission.object;
    std::exception_ptr error;
    try {
      if (const auto* function = std::get_if<detail::AdmissionFunction>(&hook.function)) {
        const std::function<void()> call = [&] { out = (*function)(admission, changed); };
        co_await in_pool(call);
      } else {
        const auto& coroutine = std::get<detail::AsyncAdmissionFunction>(hook.function);
        co_await on_loop(coroutine, admission, changed, out);
      }
    } catch (const Stopping&) {
      throw;
    } catch (...) {
      error = std::current_exception();
    }
    if (error) out = thrown(target, error);
    std::string patch;
    if (hook.mutates && out.allowed) patch = detail::json_patch(admission.object, changed);
    co_return detail::encode_admission_review(admission.uid, out, patch);
  }

  // ------------------------------------------------------------------------------ start and stop

  /// The duration of a part of the stop: limited by the manager's remaining time, but at least `least`.
  std::chrono::milliseconds within_the_stop(std::chrono::milliseconds wanted,
                                            std::chrono::milliseconds least) const {
    const auto left = time_left_();
    if (!left) return wanted;
    const auto most = std::chrono::floor<std::chrono::milliseconds>(*left) - kReserve;
    return std::min(wanted, std::max(most, least));
  }

  /// Lets running requests finish and ends the server. Waits for calls that do not end; disconnects stuck
  /// clients.
  void end() {
    const bool in_time = server_->drain(within_the_stop(options_.finish_timeout, kGoodbye));
    if (!in_time) {
      log::warn("webhook server: some requests take too long to finish, and are ended");
      {
        const std::lock_guard lock(calls_mutex_);
        ending_ = true;
      }
      stop_.request_stop();
    }
    {
      // The server's threads must exist as long as a call may wake one of them.
      std::unique_lock lock(calls_mutex_);
      no_calls_.wait(lock, [this] { return calls_ == 0; });
    }
    started_ = false;
    server_->stop(kGoodbye);
  }

  /// Connects as a client; returns the error, or an empty string.
  std::string connect() const {
    std::string host = http::host_for_clients(http::address_of_host(options_.host));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    asio::io_context context;
    asio::ssl::context tls(asio::ssl::context::tls_client);
    tls.set_verify_mode(asio::ssl::verify_none);
    asio::ssl::stream<asio::ip::tcp::socket> stream(context, tls);
    boost::system::error_code outcome = asio::error::timed_out;
    const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(host), port());
    stream.lowest_layer().async_connect(endpoint, [&](boost::system::error_code error) {
      outcome = error;
      if (error || options_.plain_http) return;
      outcome = asio::error::timed_out;
      stream.async_handshake(asio::ssl::stream_base::client,
                             [&](boost::system::error_code result) { outcome = result; });
    });
    constexpr std::chrono::seconds kPatience{10};
    context.run_for(kPatience);
    return outcome ? outcome.message() : std::string();
  }

  const WebhookOptions options_;
  const TimeLeft time_left_;
  const std::shared_ptr<EventLoop> loop_;
  const std::shared_ptr<detail::OwnRun> own_run_ = std::make_shared<detail::OwnRun>();
  Conversions conversions_;
  std::stop_source stop_;  // ends running requests
  std::atomic<bool> begun_{false};
  std::atomic<bool> started_{false};
  std::atomic<std::uint64_t> panics_{0};

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Target>, std::less<>> targets_;  // guarded by mutex_

  std::mutex calls_mutex_;
  std::condition_variable no_calls_;
  std::size_t calls_ = 0;  // guarded by calls_mutex_
  bool ending_ = false;    // guarded by calls_mutex_

  informer::HandlerPool pool_;
  std::unique_ptr<detail::CertificateWatcher> certificates_;
  std::unique_ptr<http::Server> server_;  // before the rest: its connections use it
};

WebhookServer::WebhookServer(Manager& manager, WebhookOptions options)
    // (It runs only while the manager does.)
    : impl_(std::make_shared<Impl>(manager.client().shared_loop(), std::move(options),
                                   [&manager] { return manager.stop_time_left(); })) {
  manager.add_metrics(impl_);
  manager.add_async(
      "webhook server", [impl = impl_](std::stop_token stop) { return impl->run(std::move(stop)); },
      RunnableGroup::kWebhooks);
}
WebhookServer::WebhookServer(std::shared_ptr<EventLoop> loop, WebhookOptions options)
    : impl_(std::make_shared<Impl>(std::move(loop), std::move(options),
                                   [] { return std::nullopt; })) {}
WebhookServer::~WebhookServer() {
  const auto own = impl_->own_run();
  own->end(impl_->loop());
}

void WebhookServer::add(std::string path, detail::AdmissionHook hook) {
  impl_->add(std::move(path), std::move(hook));
}
void WebhookServer::add(detail::Spoke spoke) { impl_->add(std::move(spoke)); }
std::string WebhookServer::validate_path(const api::Resource& resource) {
  return generated_path("validate", resource);
}
std::string WebhookServer::mutate_path(const api::Resource& resource) {
  return generated_path("mutate", resource);
}
std::uint16_t WebhookServer::port() const { return impl_->port(); }
HealthCheck WebhookServer::started_checker() const {
  return [impl = impl_] { return impl->check(); };
}
void WebhookServer::run(std::stop_token stop) { detail::OwnRun::run(impl_, std::move(stop)); }
Awaitable<void> WebhookServer::async_run(std::stop_token stop) {
  return detail::cancel_as_stop(
      [impl = impl_](std::stop_token either) { return impl->run(std::move(either)); },
      std::move(stop));
}
void WebhookServer::collect(std::vector<metrics::Sample>& out) const { impl_->collect(out); }

}  // namespace lookout::controller
