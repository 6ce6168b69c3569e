// lookout-registry: the program that `lookout registry` starts. It takes the same command line.
#include "cmd/registry/registry_command.h"

int main(int argc, char** argv) {
  return lookout::cmd::run_program(argc, argv, &lookout::cmd::add_registry);
}
