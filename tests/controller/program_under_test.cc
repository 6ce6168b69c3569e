// A controller program, for program_test.cc: reports an Event about each ConfigMap.
#include <chrono>
#include <string>
#include <thread>

#include "lookout/controller/builder.h"
#include "lookout/controller/program.h"
#include "lookout/k8s/core/v1.h"

using namespace lookout;

int main(int argc, char** argv) {
  controller::Program program("greeter", "Greets each ConfigMap.");
  std::string greeting = "hello";
  program.app().add_option("--greeting", greeting, "How to greet");
  bool hang = false;
  program.app().add_flag("--hang", hang, "Do not stop when told to");
  program.options().graceful_shutdown_timeout = std::chrono::seconds(1);
  controller::WebhookOptions no_drain;
  program.webhooks(
      [](controller::WebhookServer& webhooks) {
        webhooks.validate<k8s::core::v1::ConfigMap>(
            [](const controller::Admission<k8s::core::v1::ConfigMap>&) {
              return controller::denied("no more");
            });
      },
      no_drain);
  return program.run(argc, argv, [&](controller::Manager& manager) {
    controller::Builder<k8s::core::v1::ConfigMap>(manager).reconcile(
        [&](controller::Request request, controller::Context& context) -> controller::Result {
          const auto map = context.find<k8s::core::v1::ConfigMap>(request);
          if (map) context.event(*map, "Greeted", "{}", greeting);
          while (hang) std::this_thread::sleep_for(std::chrono::seconds(1));
          return {};
        });
  });
}
