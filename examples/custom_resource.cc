// A custom resource, typed by hand: the CronTab of the Kubernetes documentation.
#include <fmt/format.h>

#include "lookout/lookout.h"

using namespace lookout;

namespace {

/// What kubectl explain would say of it, in C++. A part of an object is a View, the object itself a
/// TypedObject that says where the server keeps it.
struct CronTabSpec : api::View {
  using View::View;
  std::string_view cron_spec() const { return as_value()["cronSpec"].as_string(); }
  std::string_view image() const { return as_value()["image"].as_string(); }
  std::int64_t replicas() const { return as_value()["replicas"].as_int(1); }
};

struct CronTab : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"stable.example.com", "v1", "CronTab", "crontabs",
                                               true};
  CronTabSpec spec() const { return CronTabSpec(body()["spec"]); }
};

}  // namespace

int main() try {
  const rest::Client client{rest::Config::load()};
  const auto crontabs = client.resource<CronTab>("default");

  crontabs.create(api::Object::parse(R"({
      "apiVersion": "stable.example.com/v1", "kind": "CronTab",
      "metadata": {"name": "backup"},
      "spec": {"cronSpec": "0 3 * * *", "image": "backup:1.0", "replicas": 2}})"));

  informer::SharedInformerFactory factory{client};
  const auto informer = factory.informer<CronTab>();
  factory.start();
  factory.wait_for_cache_sync();
  for (const auto& c : informer.lister().list()) {
    fmt::print("{} runs {} at \"{}\", {} at a time\n", c.key(), c.spec().image(),
               c.spec().cron_spec(), c.spec().replicas());
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
