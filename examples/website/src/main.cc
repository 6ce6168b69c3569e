#include <lookout/controller/program.h>

#include "website_controller.h"
#include "website_webhooks.h"

int main(int argc, char** argv) {
  lookout::controller::Program program("website-controller",
                                       "Makes a Deployment and a Service for each Website.");
  program.webhooks(website::add_website_webhooks);
  return program.run(argc, argv, website::add_website_controller);
}
