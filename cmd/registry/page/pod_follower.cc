#include "cmd/registry/page/pod_follower.h"

#include <utility>

#include "cmd/registry/page/clip.h"
#include "lookout/k8s/core/v1.h"

namespace lookout::cmd::registry_cmd {
namespace {

constexpr std::size_t kLongestReason = 300;

const api::Projection& projection() {
  static const auto kProjection = api::Projection::keep(
      {"metadata.deletionTimestamp", "metadata.labels.kratos-service-app",
       "metadata.annotations['prometheus.io/scrape']", "metadata.annotations['prometheus.io/port']",
       "metadata.annotations['prometheus.io/path']", "spec.hostNetwork", "status.phase",
       "status.podIP", "status.conditions.type", "status.conditions.status",
       "status.conditions.reason", "status.conditions.message"});
  return kProjection;
}

informer::InformerOptions informer_options() {
  informer::InformerOptions out;
  const api::Resource resource(k8s::core::v1::Pod::kResource);
  out.reflector.name = "pods of the page";
  out.reflector.expected_api_version = resource.api_version();
  out.reflector.expected_kind = resource.kind;
  // failure() reports the error, and the registry's informer logs it.
  out.reflector.watch_error_handler = [](std::string_view, const std::exception&) {};
  return out;
}

std::shared_ptr<cache::ListWatch> source(const rest::Client& client, const std::string& ns,
                                         const std::string& label_selector) {
  cache::ListWatchOptions options;
  options.label_selector = label_selector;
  options.decode.projection = projection();
  return std::make_shared<cache::ListWatch>(client.resource(k8s::core::v1::Pod::kResource, ns),
                                            std::move(options));
}

/// Why the pod is not ready, from its Ready condition.
std::string why_not_ready(const api::Object& object) {
  const k8s::core::v1::Pod pod(object);
  for (const auto condition : pod.status().conditions()) {
    if (condition.type() != "Ready") continue;
    if (condition.status() == "True") return {};
    const std::string_view said =
        condition.message().empty() ? condition.reason() : condition.message();
    return clip(said, kLongestReason);
  }
  return {};
}

PodFact fact_of(const api::Object& pod) {
  return {.leaving = !pod["metadata"]["deletionTimestamp"].as_string().empty(),
          .why = why_not_ready(pod)};
}

}  // namespace

/// Written by the event handler, read by any thread.
class PodFollower::Facts {
 public:
  void put(const std::string& pod, PodFact fact) {
    const bool plain = fact == PodFact();
    const std::lock_guard lock(mutex_);
    const auto found = facts_.find(pod);
    if (found == facts_.end() ? plain : found->second == fact) return;
    if (plain) {
      facts_.erase(found);
    } else {
      facts_.insert_or_assign(pod, std::move(fact));
    }
    shown_.reset();
  }
  PodFactsPtr shown() {
    const std::lock_guard lock(mutex_);
    if (!shown_) shown_ = std::make_shared<const PodFacts>(facts_);
    return shown_;
  }

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  PodFacts facts_;
  PodFactsPtr shown_;  // a copy; null if it is out of date
};

PodFollower::PodFollower(const rest::Client& client, const std::string& ns,
                         const std::string& label_selector)
    : facts_(std::make_shared<Facts>()),
      pool_(std::make_shared<informer::HandlerPool>(client.shared_loop())),
      informer_(source(client, ns, label_selector), informer_options(), client.shared_loop(),
                pool_) {
  informer::EventHandler<api::Object> handler;
  handler.on_add = [facts = facts_](const api::Object& pod) {
    facts->put(pod.key(), fact_of(pod));
  };
  handler.on_update = [facts = facts_](const api::Object&, const api::Object& pod) {
    facts->put(pod.key(), fact_of(pod));
  };
  handler.on_delete = [facts = facts_](const api::Object& pod) { facts->put(pod.key(), {}); };
  registration_ = informer_.add_handler(std::move(handler));
  informer_.start();
}

PodFollower::~PodFollower() = default;

PodFactsPtr PodFollower::facts() const { return facts_->shown(); }

std::string PodFollower::label(const std::string& pod, std::string_view name) const {
  const api::Object object = informer_.store().get_by_key(pod);
  if (!object) return {};
  return std::string(object["metadata"]["labels"][name].as_string());
}

std::vector<ScrapeTarget> PodFollower::scrape_targets() const {
  std::vector<ScrapeTarget> out;
  for (const auto& pod : informer_.store().list()) {
    if (auto target = scrape_target(pod)) out.push_back(std::move(*target));
  }
  return out;
}

std::string PodFollower::failure() const {
  if (informer_.live_since()) return {};
  const auto failure = informer_.last_failure();
  return failure ? failure->message : std::string();
}

}  // namespace lookout::cmd::registry_cmd
