#include "tests/support/allocations.h"

#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOOKOUT_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOOKOUT_SANITIZED
#endif
#endif

namespace {

thread_local std::size_t count = 0;
thread_local std::size_t largest = 0;

void note(std::size_t size) {
  ++count;
  if (size > largest) largest = size;
}

}  // namespace

namespace lookout::test {

std::size_t allocations() { return count; }
std::size_t take_largest_allocation() { return std::exchange(largest, 0); }

}  // namespace lookout::test

#if defined(LOOKOUT_SANITIZED)

// The sanitizers have their own malloc, with hooks. (Declared in sanitizer/allocator_interface.h,
// which GCC does not install.)
extern "C" int __sanitizer_install_malloc_and_free_hooks(  // NOLINT(bugprone-reserved-identifier)
    void (*on_malloc)(const volatile void*, std::size_t), void (*on_free)(const volatile void*));

namespace {

const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t size) { note(size); }, [](const volatile void*) {});

}  // namespace

#else

// A program's malloc replaces the C library's, in libraries as well; glibc offers its own under a
// second name.
extern "C" {
void* __libc_malloc(std::size_t size);                 // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t n, std::size_t size);  // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t size);  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t size) {
  note(size);
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  note(n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* memory, std::size_t size) {
  note(size);
  return __libc_realloc(memory, size);
}
}

#endif
