#include "testing/sim/logs_apart.h"

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include "testing/sim/kernel.h"

namespace lookout::sim {
namespace {

using LoggerPtr = std::shared_ptr<spdlog::logger>;

class ApartSink : public spdlog::sinks::sink {
 public:
  explicit ApartSink(std::shared_ptr<spdlog::sinks::sink> behind) : behind_(std::move(behind)) {
    set_level(behind_->level());
  }

  void log(const spdlog::details::log_msg& message) override {
    const Kernel::Apart apart;
    behind_->log(message);
  }
  void flush() override {
    const Kernel::Apart apart;
    behind_->flush();
  }
  void set_pattern(const std::string& pattern) override { behind_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    behind_->set_formatter(std::move(formatter));
  }

 private:
  const std::shared_ptr<spdlog::sinks::sink> behind_;
};

}  // namespace

LogSinks::LogSinks() {
  spdlog::apply_all(
      [&](const LoggerPtr& logger) { before_.emplace_back(logger, logger->sinks()); });
}

LogSinks::~LogSinks() {
  for (auto& [logger, sinks] : before_) logger->sinks() = std::move(sinks);
}

LogsApart::LogsApart() {
  spdlog::apply_all([](const LoggerPtr& logger) {
    for (auto& sink : logger->sinks()) sink = std::make_shared<ApartSink>(std::move(sink));
  });
}

Quiet::Quiet(bool quiet) {
  if (quiet) spdlog::apply_all([](const LoggerPtr& logger) { logger->sinks().clear(); });
}

}  // namespace lookout::sim
