// Any resource, without types: prints one field of all objects of a resource.
//
//   dynamic RESOURCE [PATH]
//
// For example: dynamic deployments .spec.template.spec.containers[0].image
#include <fmt/format.h>

#include "lookout/lookout.h"
#include "lookout/rest/discovery.h"

using namespace lookout;

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} RESOURCE [PATH]\n", argv[0]);
    return 2;
  }
  const api::FieldPath path(argc > 2 ? argv[2] : ".metadata.creationTimestamp");
  const rest::Client client{rest::Config::load()};
  const auto resources = rest::discover(client);
  const auto* found = rest::find_resource(resources, argv[1]);
  if (found == nullptr) {
    fmt::print(stderr, "the server has no {}\n", argv[1]);
    return 1;
  }
  for (const auto& object : client.resource(found->resource).list().items) {
    fmt::print("{}: {}\n", object.key(), object.at(path).to_json());
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
