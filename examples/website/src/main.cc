#include <lookout/controller/program.h>

#include "website_controller.h"

int main(int argc, char** argv) {
  lookout::controller::Program program("website-controller",
                                       "Makes a Deployment and a Service for each Website.");
  return program.run(argc, argv, website::add_website_controller);
}
