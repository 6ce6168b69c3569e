#include <lookout/informer/event_handler.h>
#include <lookout/k8s/core/v1.h>

using lookout::k8s::core::v1::Pod;

void mistaken(lookout::informer::EventHandler<Pod>);

int main() {
#if defined(MISTAKE)
  mistaken({.on_add = [](const Pod&, bool) {}});
#else
  mistaken({.on_add = [](const Pod&) {}});
#endif
}
