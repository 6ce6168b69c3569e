#include <lookout/registry/service_instance.h>

int main() {
  using namespace lookout;
  registry::ServiceInstance instance;
  instance.id = "a";
  return registry::identical(instance, instance) ? 0 : 1;
}
