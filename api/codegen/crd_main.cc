// lookout-crd-gen: the generator for lookout_add_crd(). Users call `lookout generate`.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "api/codegen/crd.h"

int main(int argc, char** argv) {
  // lookout-crd-gen OUTPUT NAMESPACE CRD.yaml...
  constexpr int kFirstInput = 3;
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc <= kFirstInput) {
    fmt::print(stderr, "usage: lookout-crd-gen OUTPUT.h NAMESPACE CRD.yaml...\n");
    return 2;
  }
  try {
    lookout::codegen::write_crd_header({arguments.begin() + kFirstInput, arguments.end()},
                                       arguments[1], arguments[2]);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "lookout-crd-gen: {}\n", e.what());
    return 1;
  }
}
