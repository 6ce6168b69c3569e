// CLI11's types, declared for headers: to compile its own header takes seconds.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): it is theirs
class App;
class Option;
}  // namespace CLI
