// Credentials from an exec plugin.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "lookout/base/pinned.h"
#include "tests/rest/certificates.h"
#include "tests/rest/credentials_fixture.h"
#include "tests/rest/environment.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/thrown.h"

namespace lookout::rest {
namespace {

using ::testing::Each;

/// Replaces the standard input of this process.
class ScopedStdin : public base::Pinned {
 public:
  explicit ScopedStdin(int fd) : saved_(::dup(STDIN_FILENO)) { ::dup2(fd, STDIN_FILENO); }
  ~ScopedStdin() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

/// A plugin that records each run and its input, and prints the file "answer".
class ExecTest : public CredentialsTest {
 protected:
  ExecTest() : no_terminal_(null_.get()) {
    write_plugin("cat " + path("answer"));
    answer(R"({"token":"one"})");
  }

  void write_plugin(const std::string& script) {
    test::write_file(dir_ / "plugin", "#!/bin/sh\necho run >> " + path("runs") +
                                          "\nprintf '%s' \"$KUBERNETES_EXEC_INFO\" > " +
                                          path("info") + "\n" + script + "\n");
    std::filesystem::permissions(dir_ / "plugin", std::filesystem::perms::owner_all);
  }
  void answer_text(std::string_view text) { test::write_file(dir_ / "answer", text); }
  void answer(const std::string& status) {
    answer_text(
        R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":)" +
        status + "}");
  }
  std::size_t runs() const {
    return std::filesystem::exists(dir_ / "runs")
               ? test::lines(test::read_file(dir_ / "runs")).size()
               : 0;
  }

  Config config() const {
    return {.server = "https://host", .exec = ExecConfig{.command = path("plugin")}};
  }
  Credentials& credentials() {
    if (!credentials_) credentials_.emplace(config(), options());
    return *credentials_;
  }
  std::string token() { return credentials().current()->authorization; }
  std::string failure(const Config& config) {
    return test::refusal<ConfigError>([&] { Credentials(config, options()).current(); });
  }
  rapidjson::Document info() const {
    rapidjson::Document out;
    out.Parse(test::read_file(dir_ / "info").c_str());
    return out;
  }

  struct Descriptor : base::Pinned {
    explicit Descriptor(int fd_in) : fd(fd_in) {}
    ~Descriptor() { ::close(fd); }
    int get() const { return fd; }
    int fd;
  };
  const Descriptor null_{::open("/dev/null", O_RDONLY)};
  const ScopedStdin no_terminal_;
  std::optional<Credentials> credentials_;
};

TEST_F(ExecTest, IsRunOnce) {
  EXPECT_TRUE(credentials().would_block());
  EXPECT_EQ(credentials().try_current(), nullptr);
  EXPECT_EQ(runs(), 0U);
  const auto first = credentials().current();
  EXPECT_EQ(first->authorization, "Bearer one");
  pass(24h);
  EXPECT_FALSE(credentials().would_block());
  EXPECT_EQ(credentials().current(), first);
  EXPECT_EQ(credentials().try_current(), first);
  EXPECT_EQ(runs(), 1U);
}

TEST_F(ExecTest, IsRunAgainAfterExpiry) {
  answer(R"({"token":"one","expirationTimestamp":")" + in(60s) + "\"}");
  EXPECT_EQ(token(), "Bearer one");
  answer(R"({"token":"two","expirationTimestamp":")" + in(120s) + "\"}");
  pass(60s);
  EXPECT_EQ(token(), "Bearer one");
  pass(1s);
  EXPECT_TRUE(credentials().would_block());
  EXPECT_EQ(credentials().try_current(), nullptr);
  EXPECT_EQ(token(), "Bearer two");
  EXPECT_EQ(runs(), 2U);
}

TEST_F(ExecTest, AcceptsADistantExpiry) {
  answer(R"({"token":"one","expirationTimestamp":"9999-12-31T23:59:59Z"})");
  EXPECT_EQ(token(), "Bearer one");
  EXPECT_FALSE(credentials().would_block());
}

TEST_F(ExecTest, AnExpiredCredentialIsUsedOnce) {
  answer(R"({"token":"one","expirationTimestamp":")" + in(-60s) + "\"}");
  EXPECT_EQ(token(), "Bearer one");
  EXPECT_EQ(token(), "Bearer one");
  EXPECT_EQ(runs(), 2U);
}

TEST_F(ExecTest, IsRunAgainAfterARefusal) {
  const auto first = credentials().current();
  answer(R"({"token":"two"})");
  credentials().invalidate(first);
  EXPECT_TRUE(credentials().would_block());
  const auto second = credentials().current();
  EXPECT_EQ(second->authorization, "Bearer two");
  // Another request was in flight with the first credential.
  credentials().invalidate(first);
  EXPECT_EQ(credentials().current(), second);
  EXPECT_EQ(runs(), 2U);
}

// The server may have rejected the credential by mistake.
TEST_F(ExecTest, AFailureAfterA401KeepsAValidCredential) {
  answer(R"({"token":"one","expirationTimestamp":")" + in(60s) + "\"}");
  const auto first = credentials().current();
  write_plugin("exit 1");
  credentials().invalidate(first);
  EXPECT_EQ(credentials().try_current(), nullptr);
  EXPECT_EQ(credentials().current(), first);
  EXPECT_EQ(credentials().try_current(), first);
  // A second rejection within the second for which a failure is kept does not run it again.
  credentials().invalidate(first);
  EXPECT_EQ(credentials().try_current(), first);
  EXPECT_EQ(runs(), 2U);
  pass(61s);
  EXPECT_THROW(credentials().current(), ConfigError);
}

TEST_F(ExecTest, ReturnsACertificate) {
  const test::KeyPair pair = test::make_certificate("jane");
  const auto json = [](const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '\n' ? "\\n" : std::string(1, c);
    return '"' + out + '"';
  };
  answer(R"({"clientCertificateData":)" + json(pair.certificate) + R"(,"clientKeyData":)" +
         json(pair.key) + "}");
  EXPECT_EQ(*credentials().current(), (Credential{.authorization = "",
                                                  .client_certificate = pair.certificate,
                                                  .client_key = pair.key}));
}

TEST_F(ExecTest, IsNotRunBesideOtherCredentials) {
  Config with_token = config();
  with_token.bearer_token = "fixed";
  EXPECT_EQ(Credentials(with_token).current()->authorization, "Bearer fixed");
  Config with_password = config();
  with_password.username = "me";
  EXPECT_EQ(Credentials(with_password).current()->authorization, "Basic bWU6");
  const test::KeyPair pair = test::make_certificate("jane");
  Config with_certificate = config();
  with_certificate.client_cert_data = pair.certificate;
  with_certificate.client_key_data = pair.key;
  EXPECT_EQ(Credentials(with_certificate).current()->authorization, "");
  EXPECT_EQ(runs(), 0U);
}

TEST_F(ExecTest, GetsArgumentsAndEnvironment) {
  const test::ScopedEnv inherited("LOOKOUT_TEST_INHERITED", "from here");
  const test::ScopedEnv replaced("LOOKOUT_TEST_REPLACED", "from here");
  write_plugin(R"(echo "$1|$2|$LOOKOUT_TEST_INHERITED|$LOOKOUT_TEST_REPLACED" > )" + path("seen") +
               "\ncat " + path("answer"));
  Config config = this->config();
  config.exec->args = {"a b", "$HOME"};
  config.exec->env = {{.name = "LOOKOUT_TEST_REPLACED", .value = "from config"}};
  Credentials(config).current();
  EXPECT_EQ(test::read_file(dir_ / "seen"), "a b|$HOME|from here|from config\n");
}

TEST_F(ExecTest, IsFoundOnThePath) {
  const test::ScopedEnv search("PATH", dir_.path().string() + ":/usr/bin:/bin");
  Config config = this->config();
  config.exec->command = "plugin";
  EXPECT_EQ(Credentials(config).current()->authorization, "Bearer one");
}

// As in Go, programs in the current directory are not found.
TEST_F(ExecTest, IsNotFoundRelativeToTheCurrentDirectory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(path(""));
  Config relative = config();
  relative.exec->command = "plugin";
  for (const char* folders : {"", ".", ":/usr/bin", "/usr/bin:", "/usr/bin:./", "../"}) {
    const test::ScopedEnv env("PATH", folders);
    EXPECT_THAT(
        [&] { Credentials(relative).current(); },
        testing::ThrowsMessage<ConfigError>(testing::AnyOf(
            testing::HasSubstr("relative to the current"), testing::HasSubstr("does not exist"))))
        << folders;
  }
  std::filesystem::current_path(before);
  EXPECT_EQ(runs(), 0U);
}

TEST_F(ExecTest, ReceivesTheExecInfo) {
  EXPECT_EQ(token(), "Bearer one");
  EXPECT_EQ(test::read_file(dir_ / "info"),
            R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)"
            R"("spec":{"interactive":false}})");
}

TEST_F(ExecTest, ReceivesTheClusterIfConfigured) {
  test::write_file(dir_ / "ca", "pem");
  Config config = this->config();
  config.ca_file = path("ca");
  config.server_name = "name";
  config.proxy_url = "http://proxy";
  config.disable_compression = true;
  config.exec->provide_cluster_info = true;
  config.exec->cluster_config = R"({"audience":"a"})";
  Credentials(config).current();
  const rapidjson::Document told = info();
  rapidjson::Document expected;
  expected.Parse(R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
    "spec":{"interactive":false,"cluster":{"server":"https://host","tls-server-name":"name",
    "certificate-authority-data":"cGVt","proxy-url":"http://proxy","disable-compression":true,
    "config":{"audience":"a"}}}})");
  EXPECT_EQ(told, expected) << test::read_file(dir_ / "info");
}

TEST_F(ExecTest, SupportsV1beta1) {
  answer_text(R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1",
                  "status":{"token":"beta"}})");
  Config config = this->config();
  config.exec->api_version = "client.authentication.k8s.io/v1beta1";
  EXPECT_EQ(Credentials(config).current()->authorization, "Bearer beta");
  EXPECT_STREQ(info()["apiVersion"].GetString(), "client.authentication.k8s.io/v1beta1");
}

/// A terminal as standard input.
class Terminal : public base::Pinned {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(master_);
    ::unlockpt(master_);
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
  }
  ~Terminal() {
    ::close(slave_);
    ::close(master_);
  }
  int get() const { return slave_; }

 private:
  int master_;
  int slave_ = -1;
};

struct InteractiveCase {
  std::string mode;
  bool terminal;
  bool stdin_unavailable;
  std::string seen;  // the plugin's input; empty: it is not run
};

class InteractiveTest : public ExecTest, public ::testing::WithParamInterface<InteractiveCase> {};

TEST_P(InteractiveTest, ControlsStandardInput) {
  const auto& [mode, terminal, stdin_unavailable, seen] = GetParam();
  write_plugin("if [ -t 0 ]; then echo terminal; else echo none; fi > " + path("seen") + "\ncat " +
               path("answer"));
  const Terminal pty;
  const ScopedStdin in(terminal ? pty.get() : null_.get());
  Config config = this->config();
  config.exec->interactive_mode = mode;
  config.exec->stdin_unavailable = stdin_unavailable;
  if (seen.empty()) {
    EXPECT_THAT(failure(config), HasSubstr("it must ask the user"));
    EXPECT_EQ(runs(), 0U);
  } else {
    EXPECT_EQ(failure(config), "");
    EXPECT_EQ(test::read_file(dir_ / "seen"), seen + "\n");
    EXPECT_EQ(info()["spec"]["interactive"].GetBool(), seen == "terminal");
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, InteractiveTest,
                         ::testing::Values(InteractiveCase{"Never", true, false, "none"},
                                           InteractiveCase{"IfAvailable", true, false, "terminal"},
                                           InteractiveCase{"IfAvailable", true, true, "none"},
                                           InteractiveCase{"IfAvailable", false, false, "none"},
                                           InteractiveCase{"Always", true, false, "terminal"},
                                           InteractiveCase{"Always", true, true, ""},
                                           InteractiveCase{"Always", false, false, ""}));

struct AnswerCase {
  std::string name;
  std::string text;
  std::string message;
};

class AnswerTest : public ExecTest, public ::testing::WithParamInterface<AnswerCase> {};

TEST_P(AnswerTest, IsRejected) {
  answer_text(GetParam().text);
  EXPECT_THAT(failure(config()), AllOf(HasSubstr("credential plugin " + path("plugin")),
                                       HasSubstr(GetParam().message), Not(HasSubstr("s3cret"))));
}

std::string credential(const std::string& status) {
  return R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":)" +
         status + "}";
}

INSTANTIATE_TEST_SUITE_P(
    Answers, AnswerTest,
    ::testing::Values(
        AnswerCase{"Nothing", "", "printed no JSON"},
        AnswerCase{"Text", "s3cret", "printed no JSON"},
        AnswerCase{"Truncated", R"({"kind":"ExecCredential","status":{"token":"s3cret)",
                   "printed no JSON"},
        AnswerCase{"Deep", std::string(500'000, '['), "printed no JSON"},
        AnswerCase{"List", "[]", "printed no ExecCredential"},
        AnswerCase{"AnotherKind", R"({"kind":"Pod"})", "printed no ExecCredential"},
        AnswerCase{"KindOfAnotherType", R"({"kind":7})", "kind is not a string"},
        AnswerCase{
            "AnotherVersion",
            R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1",)"
            R"("status":{"token":"s3cret"}})",
            "another apiVersion"},
        AnswerCase{"NoStatus",
                   R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"})",
                   "without a status"},
        AnswerCase{"NullStatus", credential("null"), "without a status"},
        AnswerCase{"EmptyStatus", credential("{}"), "neither a token nor a certificate"},
        AnswerCase{"TokenOfAnotherType", credential(R"({"token":["s3cret"]})"),
                   "token is not a string"},
        AnswerCase{"TokenWithLineBreak", credential(R"({"token":"s3cret\nX: y"})"), "line break"},
        AnswerCase{"KeyWithoutCertificate", credential(R"({"clientKeyData":"s3cret"})"),
                   "but not both"},
        AnswerCase{"BadCertificate",
                   credential(R"({"clientCertificateData":"x","clientKeyData":"s3cret"})"),
                   "no certificate in PEM"},
        AnswerCase{"BadTime", credential(R"({"token":"s3cret","expirationTimestamp":"soon"})"),
                   "expirationTimestamp"}),
    [](const auto& test) { return test.param.name; });

TEST_F(ExecTest, AMissingProgramIsReportedWithTheHint) {
  Config config = this->config();
  config.exec->command = "lookout-no-such-plugin";
  config.exec->install_hint = "Run \x1b[1mbrew install\x1b[0m it.\nOr not.";
  EXPECT_THAT(failure(config),
              AllOf(HasSubstr("lookout-no-such-plugin"), HasSubstr("the program does not exist"),
                    HasSubstr("Run ?[1mbrew install?[0m it.\nOr not.")));
}

TEST_F(ExecTest, ReportsHowTheProgramFailed) {
  write_plugin("echo s3cret; exit 7");
  EXPECT_THAT(failure(config()),
              AllOf(HasSubstr("failed with exit code 7"), Not(HasSubstr("s3cret"))));
  write_plugin("kill -9 $$");
  EXPECT_THAT(failure(config()), HasSubstr("ended by signal 9"));
}

TEST_F(ExecTest, TimeAndOutputAreBounded) {
  write_plugin("exec sleep 1000");
  CredentialsOptions options = this->options();
  options.exec_timeout = 50ms;
  options.exec_max_output = 1000;
  EXPECT_THAT([&] { Credentials(config(), options).current(); },
              ThrowsMessage<ConfigError>(HasSubstr("not done within")));
  write_plugin("exec cat /dev/zero");
  options.exec_timeout = 60s;
  EXPECT_THAT([&] { Credentials(config(), options).current(); },
              ThrowsMessage<ConfigError>(HasSubstr("printed more than 1000 bytes")));
}

TEST_F(ExecTest, TheTimeMayBeUnlimited) {
  CredentialsOptions options = this->options();
  options.exec_timeout = std::chrono::milliseconds::max();
  EXPECT_EQ(Credentials(config(), options).current()->authorization, "Bearer one");
}

TEST_F(ExecTest, AFailureIsKeptForASecond) {
  write_plugin("exit 7");
  EXPECT_THROW(token(), ConfigError);
  write_plugin("cat " + path("answer"));
  EXPECT_FALSE(credentials().would_block());
  EXPECT_THROW(token(), ConfigError);
  EXPECT_THROW(credentials().try_current(), ConfigError);
  EXPECT_EQ(runs(), 1U);
  pass(1s);
  EXPECT_TRUE(credentials().would_block());
  EXPECT_EQ(token(), "Bearer one");
}

/// A plugin that waits for the test.
class SlowExecTest : public ExecTest {
 protected:
  SlowExecTest() {
    for (const char* name : {"started", "go"}) {
      if (::mkfifo(path(name).c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
    }
    write_plugin("echo $$ > " + path("started") + "\nread line < " + path("go") + "\ncat " +
                 path("answer"));
  }
  /// Waits until the plugin runs; returns its process.
  pid_t started() const {
    pid_t pid = 0;
    std::ifstream(path("started")) >> pid;
    return pid;
  }
  void go() const { std::ofstream(path("go")) << "go\n"; }
};

TEST_F(SlowExecTest, ManyCallersShareOneRun) {
  constexpr int kCallers = 8;
  std::vector<std::shared_ptr<const Credential>> got(kCallers);
  std::latch calling(kCallers);
  credentials();
  std::vector<std::jthread> threads;
  for (auto& slot : got) {
    threads.emplace_back([&] {
      calling.count_down();
      slot = credentials().current();
    });
  }
  started();
  test::wait_for(calling);
  EXPECT_TRUE(credentials().would_block());
  EXPECT_EQ(credentials().try_current(), nullptr);
  go();
  threads.clear();
  EXPECT_THAT(got, Each(credentials().current()));
  EXPECT_EQ(runs(), 1U);
}

TEST_F(SlowExecTest, StopEndsThePlugin) {
  credentials();
  std::shared_ptr<const Credential> got = std::make_shared<Credential>();
  std::stop_source stop;
  pid_t plugin = 0;
  {
    std::jthread caller([&] { got = credentials().current(stop.get_token()); });
    plugin = started();
    stop.request_stop();
  }
  EXPECT_EQ(got, nullptr);
  EXPECT_EQ(::kill(plugin, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(SlowExecTest, AStoppedWaiterDoesNotStopThePlugin) {
  credentials();
  std::stop_source stop;
  std::shared_ptr<const Credential> first;
  std::shared_ptr<const Credential> second = std::make_shared<Credential>();
  std::jthread runner([&] { first = credentials().current(); });
  started();
  std::jthread waiter([&] { second = credentials().current(stop.get_token()); });
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(second, nullptr);
  go();
  runner.join();
  EXPECT_EQ(first->authorization, "Bearer one");
}

// A call that shares the run of another call is not stopped with it.
TEST_F(SlowExecTest, AWaiterContinuesWhenTheRunnerStops) {
  credentials();
  std::stop_source stop;
  std::shared_ptr<const Credential> second;
  std::jthread runner([&] { EXPECT_EQ(credentials().current(stop.get_token()), nullptr); });
  started();
  std::jthread waiter([&] { second = credentials().current(); });
  stop.request_stop();
  runner.join();
  started();
  go();
  waiter.join();
  EXPECT_EQ(second->authorization, "Bearer one");
  EXPECT_EQ(runs(), 2U);
}

}  // namespace
}  // namespace lookout::rest
