// Forward declarations of CLI11's types: its own header takes seconds to compile.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
class Option;
}  // namespace CLI
