// lookout: a live view of a Kubernetes cluster, and a small API server to try it on.
#include "cmd/commands.h"
#include "cmd/programs.h"

int main(int argc, char** argv) {
  using namespace lookout::cmd;
  return run_program(argc, argv, [](CLI::App& app, const CommonFlags& flags, Action& action) {
    add_serve(app, action);
    add_get(app, flags.connection, action);
    add_watch(app, flags.connection, flags.metrics_listen, action);
    add_apply(app, flags.connection, action);
    add_delete(app, flags.connection, action);
    add_logs(app, flags.connection, action);
    add_wait(app, flags.connection, action);
    add_api_resources(app, flags.connection, action);
    add_program(app, kRegistry, flags, action);
    add_program(app, kBench, flags, action);
    add_generate(app, action);
    add_new(app, action);
    add_demo(app, action);
    add_sim(app, action);
  });
}
