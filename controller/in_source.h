// InSource: marks a thread that runs user code called by a source.
#pragma once

namespace lookout::controller::detail {

/// While one exists on a thread, the thread is in a map function, a predicate or a timer's function.
/// Waiting there for the end of a source could deadlock, because that waits for this call.
class InSource {
 public:
  InSource() { ++depth(); }
  ~InSource() { --depth(); }
  InSource(const InSource&) = delete;
  InSource& operator=(const InSource&) = delete;

  static bool here() { return depth() > 0; }

 private:
  static int& depth() {
    thread_local int value = 0;
    return value;
  }
};

}  // namespace lookout::controller::detail
