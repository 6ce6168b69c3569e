// In place of xds_command.cc where gRPC is not installed.
#include "cmd/registry/xds_command.h"
#include "lookout/api/error.h"

namespace lookout::cmd::registry_cmd {

int serve_xds(const ConnectionFlags&, const Flags&) {
  throw Error(
      "this program was built without xDS: install libgrpc++-dev, libprotobuf-dev and "
      "protobuf-compiler-grpc, and build it again with -DLOOKOUT_XDS=ON");
}

}  // namespace lookout::cmd::registry_cmd
