#include <lookout/k8s/apps/v1.h>
#if !defined(MISTAKE)
#include <lookout/k8s/apps/v1_draft.h>
#endif

int main() {
  const auto web = lookout::k8s::apps::v1::Deployment::draft("web", "shop");
  return web.changed() ? 0 : 1;
}
