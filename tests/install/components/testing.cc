#include <lookout/testing/fake_clock.h>

#include <chrono>

int main() {
  lookout::test::FakeClock clock;
  const auto before = clock.now();
  clock.advance(std::chrono::hours(1));
  return clock.now() - before == std::chrono::hours(1) ? 0 : 1;
}
