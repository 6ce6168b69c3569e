// Settings for all tests under ThreadSanitizer.
#include <sanitizer/common_interface_defs.h>
#include <spdlog/spdlog.h>

#include <thread>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)

/// Code that the sanitizer cannot see into: libstdc++'s reference counts of exceptions and their
/// texts, and internal locking in spdlog.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n"
         "race:std::runtime_error::~runtime_error\n"
         "race:spdlog::details::registry::registry\n"
         "called_from_lib:libspdlog.so\n";
}

// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace {

/// spdlog makes its logger when it is used first, which is not to be by two threads at once: that
/// the one waits for the other cannot be seen. The sanitizer begins its own thread with the first
/// other one, and its symbolizer (a process, and pipes to it) with the first report that may be
/// suppressed. Tests that count threads and descriptors shall find them there.
[[gnu::constructor]] void begin_early() {
  spdlog::default_logger_raw();
  std::thread([] {}).join();
  char text[200];
  __sanitizer_symbolize_pc(reinterpret_cast<void*>(&begin_early), "%f", text, sizeof text);
}

}  // namespace
