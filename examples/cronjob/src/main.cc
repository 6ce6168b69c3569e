#include <lookout/controller/program.h>

#include "cronjob_controller.h"

int main(int argc, char** argv) {
  lookout::controller::Program program(
      "cronjob-controller", "Starts the Jobs of CronJobs, as kubebuilder's tutorial does.");
  return program.run(argc, argv, [](lookout::controller::Manager& manager) {
    cronjob::add_cronjob_controller(manager);
  });
}
