// Keeps Clang's optimiser away from Asio's thread-local variables. Comes before all headers of
// Asio.
#pragma once

#include <boost/asio/detail/config.hpp>

// A coroutine may go on in another thread. Clang up to 18 at least may compute the address of a
// thread-local variable once for a whole coroutine (llvm/llvm-project#47179 and #63022). Two
// threads would then use one of Asio's caches of memory for frames and operations at the same time.
// A call that is not inlined gives the address anew. Asio reads its thread-local variables in the
// functions of these headers. (io_context::strand has others; Lookout does not use it.)
//
// The variables and the functions stay the same, so other code of a program may include Asio
// without this header. A source whose own coroutines change threads includes a header of Lookout
// before those of Asio.
#if defined(__clang__) && defined(BOOST_ASIO_HEADER_ONLY)
#pragma push_macro("BOOST_ASIO_DECL")
#undef BOOST_ASIO_DECL
#define BOOST_ASIO_DECL __attribute__((noinline)) inline
#include <boost/asio/detail/scheduler.hpp>
#include <boost/asio/detail/strand_executor_service.hpp>
#include <boost/asio/detail/thread_context.hpp>
#pragma pop_macro("BOOST_ASIO_DECL")
#endif
