// Many pieces of work at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace lookout::workqueue {

/// Calls `work` for each of 0 ... pieces-1, on so many threads, and returns when all calls have
/// returned (client-go's ParallelizeUntil). After a stop no more pieces are begun. Each thread
/// takes `chunk` pieces at a time. The first exception that `work` throws ends it as a stop does,
/// and is thrown.
void parallelize_until(std::stop_token stop, std::size_t workers, std::size_t pieces,
                       const std::function<void(std::size_t piece)>& work, std::size_t chunk = 1);

}  // namespace lookout::workqueue
