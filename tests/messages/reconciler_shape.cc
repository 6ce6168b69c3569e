#include <lookout/controller/builder.h>
#include <lookout/k8s/core/v1.h>

using namespace lookout;

void add(controller::Manager& manager) {
  controller::Builder<k8s::core::v1::Pod>(manager).reconcile(
#if defined(MISTAKE)
      [](controller::Context&, controller::Request) -> controller::Result { return {}; });
#else
      [](controller::Request, controller::Context&) -> controller::Result { return {}; });
#endif
}
