// Whether a thread is in code of the program that a source of requests calls.
#pragma once

namespace lookout::controller::detail {

/// While one exists on a thread, that thread is in a map function, a predicate or a timer's
/// function. To wait there for the end of a source would be a deadlock if that waits for this call.
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
