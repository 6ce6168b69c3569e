#include <lookout/registry/clients/grpc.h>
#include <lookout/registry/kratos/registry.h>

int main() {
  using namespace lookout;
  rest::Config config;
  config.server = "http://127.0.0.1:1";
  registry::kratos::Registry registry{rest::Client{config}, {.ns = "default"}};
  try {
    const registry::GrpcService service(registry, "dns:///web", grpc::InsecureChannelCredentials());
  } catch (const InvalidArgument&) {
    const registry::GrpcService service(registry, "lookout:///web",
                                        grpc::InsecureChannelCredentials());
    return service.channel() == nullptr ? 0 : 1;
  }
  return 1;
}
