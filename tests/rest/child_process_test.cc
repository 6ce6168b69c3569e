#include "rest/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include "tests/support/files.h"

namespace lookout::rest::detail {
namespace {

using namespace std::chrono_literals;
using End = ChildResult::End;

ChildRequest shell(std::string script) {
  return {.command = {"/bin/sh", "-c", std::move(script)},
          .environment = {"PATH=/usr/bin:/bin", "GREETING=hello world"},
          .timeout = 60s,
          .stop = {}};
}

/// True if this process has a child that it has not waited for.
bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

TEST(ChildProcessTest, ReturnsOutputAndStatus) {
  const ChildResult result = run_child(shell("printf '%s' \"$GREETING\"; exit 3"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "hello world");
  EXPECT_FALSE(has_children());
}

TEST(ChildProcessTest, AcceptsLargeOutput) {
  const ChildResult result = run_child(shell("head -c 900000 /dev/zero"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.output.size(), 900'000U);
}

TEST(ChildProcessTest, ReportsAMissingProgram) {
  const ChildResult result =
      run_child({.command = {"/no/such/program"}, .environment = {}, .timeout = 60s, .stop = {}});
  EXPECT_EQ(result.end, End::kNotStarted);
  EXPECT_EQ(result.status, ENOENT);
}

TEST(ChildProcessTest, NamesTheSignalThatEndedIt) {
  const ChildResult result = run_child(shell("kill -TERM $$"));
  EXPECT_EQ(result.end, End::kSignalled);
  EXPECT_EQ(result.status, SIGTERM);
}

TEST(ChildProcessTest, ReadsNothingFromStandardInput) {
  EXPECT_EQ(run_child(shell("cat; echo done")).output, "done\n");
}

TEST(ChildProcessTest, KillsASlowProgram) {
  ChildRequest request = shell("exec sleep 1000");
  request.timeout = 50ms;
  EXPECT_EQ(run_child(request).end, End::kTimedOut);
  EXPECT_FALSE(has_children());
}

TEST(ChildProcessTest, KillsAProgramThatClosedItsOutput) {
  ChildRequest request = shell("exec >&-; exec sleep 1000");
  request.timeout = 50ms;
  EXPECT_EQ(run_child(request).end, End::kTimedOut);
  EXPECT_FALSE(has_children());
}

TEST(ChildProcessTest, KillsAProgramThatWritesTooMuch) {
  ChildRequest request = shell("exec cat /dev/zero");
  request.max_output = 100'000;
  const ChildResult result = run_child(request);
  EXPECT_EQ(result.end, End::kTooMuchOutput);
  EXPECT_LT(result.output.size(), 200'000U);
  EXPECT_FALSE(has_children());
}

TEST(ChildProcessTest, AStopKillsTheProgram) {
  const test::TempDir dir;
  const std::string pipe = (dir / "pipe").string();
  ASSERT_EQ(::system(("mkfifo " + pipe).c_str()), 0);
  std::stop_source source;
  std::jthread stopper([&] {
    std::ifstream(pipe).get();  // until the program runs
    source.request_stop();
  });
  ChildRequest request = shell("echo x > " + pipe + "; exec sleep 1000");
  request.stop = source.get_token();
  EXPECT_EQ(run_child(request).end, End::kStopped);
  EXPECT_FALSE(has_children());
}

// A program may leave a child that keeps the output open.
TEST(ChildProcessTest, DoesNotWaitForGrandchildren) {
  const ChildResult result = run_child(shell("sleep 1000 2>/dev/null & echo $!"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(::kill(std::stoi(result.output), SIGKILL), 0);
}

TEST(ChildProcessTest, SignalsHaveTheirDefaults) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  const ChildResult piped = run_child(shell("kill -PIPE $$; echo survived"));
  const ChildResult terminated = run_child(shell("kill -TERM $$; echo survived"));
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::signal(SIGPIPE, before);
  EXPECT_EQ(piped.status, SIGPIPE);
  EXPECT_EQ(terminated.status, SIGTERM);
}

TEST(ChildProcessTest, DoesNotInheritDescriptors) {
  const test::TempDir dir;
  test::write_file(dir / "file", "x");
  const int leaked = ::open((dir / "file").c_str(), O_RDONLY);  // without O_CLOEXEC
  ASSERT_GE(leaked, 0);
  const ChildResult result = run_child(shell("ls /proc/self/fd | wc -l"));
  ::close(leaked);
  EXPECT_EQ(result.output, "4\n");  // 0, 1, 2 and the directory that ls reads
}

// Like a program that ignores its children.
TEST(ChildProcessTest, WorksWithSigchldIgnored) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const ChildResult result = run_child(shell("echo out"));
  ::signal(SIGCHLD, before);
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "out\n");
}

}  // namespace
}  // namespace lookout::rest::detail
