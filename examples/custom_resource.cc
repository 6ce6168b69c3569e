// A custom resource with types that are generated from its CRD. crontab.yaml is the CRD; the
// CMakeLists.txt here calls lookout_add_crd(), which writes crontab.h.
//
// It needs a cluster that has the CRD: kubectl apply -f examples/crontab.yaml
#include <fmt/format.h>

#include "crontab.h"
#include "lookout/controller/conditions.h"
#include "lookout/lookout.h"

using namespace lookout;
using example::v1::CronTab;

int main() try {
  const rest::Client client{rest::Config::load()};
  const auto crontabs = client.resource<CronTab>("default");

  // An earlier run may have left the object.
  if (crontabs.find("backup")) crontabs.remove("backup");

  // A new object.
  auto backup = CronTab::draft("backup", "default");
  backup.spec().set_cron_spec("0 3 * * *").set_image("backup:1.0").set_replicas(2);
  backup.spec().set_concurrency_policy(example::v1::CronTabSpecConcurrencyPolicy::kForbid);
  backup.spec().env().append("TARGET").set_value("/var/backups");
  const CronTab made = crontabs.create(backup);

  // A change: sends only the difference.
  const auto change = made.edit();
  change.spec().env().get_or_append("TARGET").set_value("/mnt/backups");
  crontabs.patch(change);

  // A condition with lastTransitionTime and observedGeneration.
  const auto status = crontabs.get("backup").edit();
  controller::set_condition(
      status, {"Ready", controller::ConditionStatus::kTrue, "Scheduled", "runs at 3:00"});
  crontabs.patch_status(status);

  // Informers and listers use the type, too.
  informer::SharedInformerFactory factory{client};
  const auto informer = factory.informer<CronTab>();
  factory.start();
  factory.wait_for_cache_sync();
  for (const CronTab& c : informer.lister().list()) {
    fmt::print("{} runs {} at \"{}\", {} at a time\n", c.key(), c.spec().image(),
               c.spec().cron_spec(), c.spec().replicas().value_or(1));
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
