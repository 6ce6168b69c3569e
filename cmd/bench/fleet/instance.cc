#include "cmd/bench/fleet/instance.h"

#include <atomic>
#include <stop_token>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::cmd::bench::fleet {

/// kratos' registrar, until the program is killed.
class Instance::Announcer : public registry::Registrar {
 public:
  Announcer(const rest::Client& client, const std::string& pod)
      : registry_(client, options_for(pod)) {}

  using Registrar::deregister_instance;
  using Registrar::register_instance;
  void register_instance(const registry::ServiceInstance& instance,
                         rest::CallOptions call) override {
    if (!silent_) registry_.register_instance(instance, std::move(call));
  }
  void deregister_instance(const registry::ServiceInstance& instance,
                           rest::CallOptions call) override {
    if (!silent_) registry_.deregister_instance(instance, std::move(call));
  }
  void silence() { silent_ = true; }

 private:
  static registry::Options options_for(const std::string& pod) {
    registry::Options out;
    out.ns = kNamespace;
    out.pod = {.ns = kNamespace, .name = pod};
    return out;
  }

  registry::kratos::Registry registry_;
  std::atomic<bool> silent_{false};
};

Instance::Instance(Cluster& cluster, std::string name, const InstanceOptions& options)
    : cluster_(cluster),
      name_(std::move(name)),
      server_(options.answer_time),
      announcer_(std::make_shared<Announcer>(cluster.client(), name_)) {
  cluster_.add_pod(name_, server_.port());
  registry::AppOptions app;
  app.name = "web";
  app.id = name_;
  app.endpoints = {registry::Endpoint("http", "0.0.0.0", server_.port())};
  app.notice = options.notice;
  app.drain = options.notice + std::chrono::seconds(10);
  app.in_flight = [this] { return server_.in_flight(); };
  app.on_error = [](const std::string&) {};  // outages of the API server are expected
  app.registrar = announcer_;
  app.signals = false;
  app_ = std::make_unique<registry::App>(cluster_.client(), std::move(app));
  thread_ = std::thread(
      [this] { app_->run([this](const std::stop_token& stop) { server_.serve(stop); }); });
}

Instance::~Instance() {
  kill();
  if (!has_pod_) return;
  try {
    cluster_.remove_pod(name_);
  } catch (const Error&) {
    // The API server is unreachable.
  }
}

bool Instance::wait_registered(std::chrono::milliseconds time) const {
  return app_->wait_registered(time);
}

void Instance::terminate() { app_->stop(); }

void Instance::ended() {
  if (thread_.joinable()) thread_.join();
  cluster_.remove_pod(name_);
  has_pod_ = false;
}

void Instance::kill() {
  announcer_->silence();
  server_.kill();
  if (thread_.joinable()) thread_.join();
}

}  // namespace lookout::cmd::bench::fleet
