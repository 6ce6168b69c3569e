#include "lookout/tools/workqueue/parallelize.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace lookout::workqueue {

void parallelize_until(std::stop_token stop, std::size_t workers, std::size_t pieces,
                       const std::function<void(std::size_t piece)>& work, std::size_t chunk) {
  chunk = std::max<std::size_t>(chunk, 1);
  const std::size_t chunks = pieces / chunk + (pieces % chunk != 0 ? 1 : 0);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr error;  // guarded by mutex
  const auto run = [&] {
    try {
      for (;;) {
        const std::size_t taken = next.fetch_add(1);
        if (taken >= chunks) return;
        const std::size_t end = std::min(pieces, (taken + 1) * chunk);
        for (std::size_t piece = taken * chunk; piece < end; ++piece) {
          if (stop.stop_requested() || failed) return;
          work(piece);
        }
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(workers, chunks); ++i) threads.emplace_back(run);
    if (workers > 0) run();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace lookout::workqueue
