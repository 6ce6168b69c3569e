#include "lookout/controller/cluster.h"

#include <utility>

#include "lookout/api/error.h"

namespace lookout::controller {
namespace {

/// The name is a part of a path, /readyz/caches/NAME.
std::string checked(std::string name) {
  if (name.empty()) throw InvalidArgument("a cluster needs a name");
  if (name.find('/') != std::string::npos)
    throw InvalidArgument("cluster \"" + name + "\": its name must not contain a slash");
  return name;
}

}  // namespace

Cluster::Cluster(std::string name, rest::Client client, CacheOptions options)
    : name_(checked(std::move(name))),
      client_(std::move(client)),
      cache_(client_, std::move(options), name_) {}

}  // namespace lookout::controller
