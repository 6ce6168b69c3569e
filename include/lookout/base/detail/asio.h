// Protects Asio's thread-local variables from Clang's optimiser. Include it before all headers of
// Asio.
#pragma once

#include <boost/asio/detail/config.hpp>

// A coroutine may resume on another thread. Clang (at least up to 18) may compute the address of a
// thread-local variable once for a whole coroutine (llvm/llvm-project#47179 and #63022). Two
// threads would then use the same cache of Asio for frames and operations at the same time. A call
// that is not inlined computes the address again. Asio reads its thread-local variables in the
// functions of these headers. (io_context::strand has others; Lookout does not use it.)
//
// The variables and the functions do not change, so other code of a program may include Asio
// without this header. A source file whose own coroutines change threads must include a header of
// Lookout before those of Asio.
#if defined(__clang__) && defined(BOOST_ASIO_HEADER_ONLY)
#pragma push_macro("BOOST_ASIO_DECL")
#undef BOOST_ASIO_DECL
#define BOOST_ASIO_DECL __attribute__((noinline)) inline
#include <boost/asio/detail/scheduler.hpp>
#include <boost/asio/detail/strand_executor_service.hpp>
#include <boost/asio/detail/thread_context.hpp>
#pragma pop_macro("BOOST_ASIO_DECL")
#endif
