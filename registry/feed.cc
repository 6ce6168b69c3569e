#include "lookout/registry/feed.h"

#include <utility>

#include "registry/atomic_ref.h"

namespace lookout::registry {

struct Feed::State {
  explicit State(InstanceSetPtr first) : current(std::move(first)) {}

  detail::AtomicRef<InstanceSet> current;
  Subscription subscription;  // last: destroyed first
};

Feed::Feed(Discovery& discovery, const std::string& service)
    : state_(std::make_unique<State>(discovery.latest(service))) {
  state_->subscription = discovery.follow(
      service, [state = state_.get()](const InstanceSetPtr& set) { state->current.store(set); });
}
Feed::~Feed() = default;
Feed::Feed(Feed&&) noexcept = default;
Feed& Feed::operator=(Feed&&) noexcept = default;

InstanceSetPtr Feed::load() const { return state_->current.load(); }

}  // namespace lookout::registry
