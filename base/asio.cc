// Asio's functions, compiled once instead of in each source that includes them
// (BOOST_ASIO_SEPARATE_COMPILATION, which cmake/LookoutTargets.cmake defines for this project only).
// The symbols are weak, like those of inline functions, as other parts of a program may define them.
#undef BOOST_ASIO_DECL  // Clang gets base/detail/asio.h before all of Asio.
#if defined(__clang__)
#define BOOST_ASIO_DECL __attribute__((weak))
#else
#define BOOST_ASIO_DECL inline __attribute__((used))  // which also lets GCC inline them here
#endif
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
