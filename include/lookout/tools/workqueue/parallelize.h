// parallelize_until(): runs many pieces of work in parallel.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace lookout::workqueue {

/// Calls `work` for each of 0 ... pieces-1, on `workers` threads, and returns when all calls have
/// returned (client-go's ParallelizeUntil). Each thread takes `chunk` pieces at a time. A stop
/// keeps further pieces from starting. So does the first exception from `work`, which is rethrown.
void parallelize_until(std::stop_token stop, std::size_t workers, std::size_t pieces,
                       const std::function<void(std::size_t piece)>& work, std::size_t chunk = 1);

}  // namespace lookout::workqueue
