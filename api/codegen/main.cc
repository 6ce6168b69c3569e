// lookout-gen: writes the symbol table, the type table, the table of protobuf messages, the resource
// table, the typed views and the drafts from the schema facts; or the table of kubectl's columns.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "api/codegen/facts.h"
#include "api/codegen/generate.h"

namespace {

/// Does not touch an unchanged file, to avoid rebuilds.
void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream old;
    if (in && (old << in.rdbuf()) && old.str() == text) return;
  }
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error(fmt::format("{}: cannot be written", path.string()));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lookout::codegen;
  if (argc != 4) {
    fmt::print(stderr,
               "usage: lookout-gen FACTS.json WELL_KNOWN.txt OUTPUT_DIR\n"
               "       lookout-gen columns COLUMNS.json OUTPUT.inc\n");
    return 2;
  }
  try {
    if (std::string_view(argv[1]) == "columns") {
      write_if_changed(argv[3], generate_columns(argv[2]));
      return 0;
    }
    const Facts facts = load_facts(argv[1]);
    const WellKnown well_known = load_well_known(argv[2]);
    for (const Files& files :
         {generate_symbols(facts, well_known), generate_types(facts, well_known),
          generate_wire(facts, well_known), generate_views(facts, well_known),
          generate_drafts(facts), generate_resources(facts)}) {
      for (const auto& [name, text] : files)
        write_if_changed(std::filesystem::path(argv[3]) / name, text);
    }
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "lookout-gen: {}\n", e.what());
    return 1;
  }
}
