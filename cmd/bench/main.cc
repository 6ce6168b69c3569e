// lookout-bench: the program that `lookout bench` starts. It takes the same command line.
#include "cmd/bench/bench_command.h"

int main(int argc, char** argv) {
  using namespace lookout::cmd;
  return run_program(argc, argv, [](CLI::App& app, const CommonFlags& flags, Action& action) {
    add_bench(app, flags.connection, action);
  });
}
