#include "lookout/tools/record/event_sink.h"

#include <utility>

#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/events/v1.h"

namespace lookout::record {
namespace {

class ClientSink : public EventSink {
 public:
  ClientSink(rest::Client client, api::Resource resource)
      : client_(std::move(client)), resource_(std::move(resource)) {}

  Awaitable<void> create(api::Object event, rest::CallOptions call) override {
    const rest::CreateOptions options;
    const rest::ResourceClient events = client_.resource(resource_, event.ns());
    co_await events.async_create(event, options, call);
  }

  Awaitable<void> patch(std::string ns, std::string name, std::string patch,
                        rest::CallOptions call) override {
    const rest::PatchOptions options;
    const std::string no_subresource;
    const rest::ResourceClient events = client_.resource(resource_, ns);
    co_await events.async_patch(name, rest::PatchType::kStrategicMerge, patch, options,
                                no_subresource, call);
  }

 private:
  const rest::Client client_;
  const api::Resource resource_;
};

}  // namespace

std::shared_ptr<EventSink> make_event_sink(rest::Client client, EventsApi api) {
  return std::make_shared<ClientSink>(std::move(client),
                                      api == EventsApi::kCore
                                          ? api::Resource(k8s::core::v1::Event::kResource)
                                          : api::Resource(k8s::events::v1::Event::kResource));
}

}  // namespace lookout::record
