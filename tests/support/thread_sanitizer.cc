// What every test under ThreadSanitizer brings along.
#include <sanitizer/common_interface_defs.h>

#include <thread>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)

/// libstdc++ counts references to exceptions in code that the sanitizer does not see into.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}

// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace {

/// The sanitizer begins its own thread with the first other one, and its symbolizer (a process, and
/// pipes to it) with the first report that may be suppressed. Tests that count threads and
/// descriptors shall find them there.
[[gnu::constructor]] void begin_early() {
  std::thread([] {}).join();
  char text[200];
  __sanitizer_symbolize_pc(reinterpret_cast<void*>(&begin_early), "%f", text, sizeof text);
}

}  // namespace
