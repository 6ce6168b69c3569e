// Settings for all tests under ThreadSanitizer.
#include <sanitizer/common_interface_defs.h>
#include <spdlog/spdlog.h>

#include <thread>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)

/// Code that is not instrumented: libstdc++'s reference counts of exceptions and their texts, and
/// internal locking in spdlog.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n"
         "race:std::runtime_error::~runtime_error\n"
         "race:spdlog::details::registry::registry\n"
         "called_from_lib:libspdlog.so\n";
}

// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace {

/// spdlog creates its logger at its first use, in code that the sanitizer does not see, so that
/// must not happen on two threads at once. The sanitizer starts its own thread with the first
/// additional thread, and its symbolizer (a process, and pipes to it) with the first report that
/// may be suppressed. Both exist before tests count threads and descriptors.
[[gnu::constructor]] void begin_early() {
  spdlog::default_logger_raw();
  std::thread([] {}).join();
  char text[200];
  __sanitizer_symbolize_pc(reinterpret_cast<void*>(&begin_early), "%f", text, sizeof text);
}

}  // namespace
