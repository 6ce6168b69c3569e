#include "lookout/rest/credentials.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/rest/certificates.h"
#include "tests/rest/credentials_fixture.h"
#include "tests/support/files.h"
#include "tests/support/thrown.h"

namespace lookout::rest {
namespace {

TEST_F(CredentialsTest, EmptyConfigurationHasNoCredentials) {
  Credentials credentials({.server = "https://host"});
  EXPECT_EQ(*credentials.current(), Credential{});
  EXPECT_FALSE(credentials.would_block());
}

TEST_F(CredentialsTest, FixedCredentialsDoNotChange) {
  const test::KeyPair pair = test::make_certificate("jane");
  Credentials credentials({.server = "https://host",
                           .client_cert_data = pair.certificate,
                           .client_key_data = pair.key,
                           .bearer_token = "abc"},
                          options());
  const auto first = credentials.current();
  EXPECT_EQ(*first, (Credential{.authorization = "Bearer abc",
                                .client_certificate = pair.certificate,
                                .client_key = pair.key}));
  credentials.invalidate(first);
  pass(1h);
  EXPECT_EQ(credentials.current(), first);
  EXPECT_EQ(credentials.try_current(), first);
  EXPECT_FALSE(credentials.would_block());
}

TEST_F(CredentialsTest, BasicAuthentication) {
  Credentials credentials(
      {.server = "https://host", .username = "Aladdin", .password = "open sesame"});
  EXPECT_EQ(credentials.current()->authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

TEST_F(CredentialsTest, ConflictsAreRejected) {
  EXPECT_THROW(Credentials({.server = "https://host", .bearer_token = "a", .username = "b"}),
               ConfigError);
}

class TokenFileTest : public CredentialsTest {
 protected:
  TokenFileTest() { write("first"); }
  void write(std::string_view token) { test::write_file(dir_ / "token", token); }
  std::string token() { return credentials_->current()->authorization; }

  std::unique_ptr<Credentials> credentials_ = std::make_unique<Credentials>(
      Config{.server = "https://host", .token_file = path("token")}, options());
};

TEST_F(TokenFileTest, TokenIsTrimmed) {
  write(" \nfirst\r\n\n");
  EXPECT_EQ(token(), "Bearer first");
}

TEST_F(TokenFileTest, ChangesAreSeenWithinASecond) {
  const auto first = credentials_->current();
  EXPECT_EQ(first->authorization, "Bearer first");
  write("second!");
  pass(999ms);
  EXPECT_EQ(credentials_->current(), first);
  pass(1ms);
  EXPECT_EQ(token(), "Bearer second!");
}

TEST_F(TokenFileTest, AnUnchangedFileReturnsTheSameCredential) {
  const auto first = credentials_->current();
  pass(1h);
  EXPECT_EQ(credentials_->current(), first);
}

// The kubelet renews the token of a pod like this.
TEST_F(TokenFileTest, SeesAReplacedDirectory) {
  test::write_file(dir_ / "..v1/token", "v1");
  test::write_file(dir_ / "..v2/token", "v2");
  std::filesystem::create_directory_symlink("..v1", dir_ / "..data");
  std::filesystem::remove(dir_ / "token");
  std::filesystem::create_symlink("..data/token", dir_ / "token");
  EXPECT_EQ(token(), "Bearer v1");
  std::filesystem::create_directory_symlink("..v2", dir_ / "..tmp");
  std::filesystem::rename(dir_ / "..tmp", dir_ / "..data");
  pass(1s);
  EXPECT_EQ(token(), "Bearer v2");
}

TEST_F(TokenFileTest, KeepsTheLastValidToken) {
  EXPECT_EQ(token(), "Bearer first");
  std::filesystem::remove(dir_ / "token");
  pass(1s);
  EXPECT_EQ(token(), "Bearer first");
  pass(10min);
  EXPECT_EQ(token(), "Bearer first");
  write("");
  pass(1s);
  EXPECT_EQ(token(), "Bearer first");
  write("two\nlines");
  pass(1s);
  EXPECT_EQ(token(), "Bearer first");
  write("second");
  pass(1s);
  EXPECT_EQ(token(), "Bearer second");
}

TEST_F(TokenFileTest, SeesAChangeThatKeepsSizeAndTime) {
  EXPECT_EQ(token(), "Bearer first");
  const std::string file = path("token");
  struct stat before {};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  {
    std::fstream in_place(file, std::ios::in | std::ios::out);
    in_place << "other";
  }
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  pass(1s);
  EXPECT_EQ(token(), "Bearer other");
}

// A file whose content the kernel generates on every read, with constant metadata.
TEST_F(TokenFileTest, IsReadAtLeastOnceAMinute) {
  const std::string file = "/proc/sys/kernel/random/uuid";
  if (!std::filesystem::is_regular_file(file)) GTEST_SKIP() << "no " << file;
  Credentials credentials({.server = "https://host", .token_file = file}, options());
  const std::string first = credentials.current()->authorization;
  EXPECT_EQ(credentials.current()->authorization, first);
  pass(1min);
  EXPECT_NE(credentials.current()->authorization, first);
}

TEST_F(TokenFileTest, IsReadAgainAfterARefusal) {
  const auto first = credentials_->current();
  write("second");
  credentials_->invalidate(first);
  EXPECT_EQ(token(), "Bearer second");
}

TEST_F(TokenFileTest, ARefusalOfAnOldTokenChangesNothing) {
  const auto first = credentials_->current();
  write("second");
  pass(1s);
  const auto second = credentials_->current();
  write("third");
  credentials_->invalidate(first);
  EXPECT_EQ(credentials_->current(), second);
}

TEST_F(TokenFileTest, AClockThatIsSetBackDoesNotHideChanges) {
  EXPECT_EQ(token(), "Bearer first");
  write("second");
  pass(-1h);
  EXPECT_EQ(token(), "Bearer second");
}

TEST_F(TokenFileTest, ReportsWhyThereIsNoToken) {
  std::filesystem::remove(dir_ / "token");
  EXPECT_THAT([&] { token(); }, ThrowsMessage<ConfigError>(
                                    AllOf(HasSubstr(path("token")), HasSubstr("No such file"))));
  write(" \n");
  pass(1s);
  EXPECT_THAT([&] { token(); }, ThrowsMessage<ConfigError>(HasSubstr("is empty")));
  write("s3cret\ns3cret");
  pass(1s);
  EXPECT_THAT([&] { token(); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("does not contain a token"), Not(HasSubstr("s3cret")))));
  write(std::string(5 << 20, 'x'));
  pass(1s);
  EXPECT_THAT([&] { token(); }, ThrowsMessage<ConfigError>(HasSubstr("larger than")));
  write("good");
  pass(1s);
  EXPECT_EQ(token(), "Bearer good");
}

TEST_F(TokenFileTest, OverridesTheFixedTokenOnceItWasRead) {
  std::filesystem::remove(dir_ / "token");
  credentials_ = std::make_unique<Credentials>(
      Config{.server = "https://host", .bearer_token = "fixed", .token_file = path("token")},
      options());
  EXPECT_EQ(token(), "Bearer fixed");
  write("file");
  pass(1s);
  EXPECT_EQ(token(), "Bearer file");
  std::filesystem::remove(dir_ / "token");
  pass(2min);
  EXPECT_EQ(token(), "Bearer file");
}

TEST_F(TokenFileTest, ManyThreadsGetCompleteTokens) {
  std::vector<std::jthread> threads;
  std::atomic<bool> done = false;
  std::atomic<int> others = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        const std::string value = token();
        if (value != "Bearer first" && value != "Bearer second") ++others;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    test::write_file(dir_ / "new", i % 2 == 0 ? "second" : "first");
    std::filesystem::rename(dir_ / "new", dir_ / "token");
    pass(1s);
  }
  done = true;
  threads.clear();
  EXPECT_EQ(others, 0);
  EXPECT_EQ(token(), "Bearer first");
}

class CertificateFilesTest : public CredentialsTest {
 protected:
  void write(const test::KeyPair& pair) {
    test::write_file(dir_ / "crt", pair.certificate);
    test::write_file(dir_ / "key", pair.key);
  }
  Config config() const {
    return {
        .server = "https://host", .client_cert_file = path("crt"), .client_key_file = path("key")};
  }

  const test::KeyPair one_ = test::make_certificate("one");
  const test::KeyPair two_ = test::make_certificate("two");
};

TEST_F(CertificateFilesTest, AreReadAgainWhenTheyChange) {
  write(one_);
  Credentials credentials(config(), options());
  const auto first = credentials.current();
  EXPECT_EQ(first->client_certificate, one_.certificate);
  EXPECT_EQ(first->client_key, one_.key);
  write(two_);
  EXPECT_EQ(credentials.current(), first);
  pass(1s);
  EXPECT_EQ(credentials.current()->client_certificate, two_.certificate);
  EXPECT_EQ(credentials.current()->client_key, two_.key);
}

TEST_F(CertificateFilesTest, HalfAChangeIsNotUsed) {
  write(one_);
  Credentials credentials(config(), options());
  const auto first = credentials.current();
  test::write_file(dir_ / "crt", two_.certificate);
  pass(1s);
  EXPECT_EQ(credentials.current(), first);
  test::write_file(dir_ / "key", two_.key);
  pass(1s);
  EXPECT_EQ(credentials.current()->client_certificate, two_.certificate);
}

TEST_F(CertificateFilesTest, AKeyFileMayComplementCertificateData) {
  test::write_file(dir_ / "key", one_.key);
  Credentials credentials({.server = "https://host",
                           .client_cert_data = one_.certificate,
                           .client_cert_file = path("unused"),
                           .client_key_file = path("key")});
  EXPECT_EQ(credentials.current()->client_key, one_.key);
}

TEST_F(CertificateFilesTest, ReportsErrors) {
  const auto error_with = [&](const test::KeyPair& pair) {
    write(pair);
    return test::refusal<ConfigError>([&] { Credentials(config(), options()).current(); });
  };
  EXPECT_THAT(error_with({one_.certificate, two_.key}), HasSubstr("not that of the certificate"));
  EXPECT_THAT(error_with({"hello", one_.key}), HasSubstr("no certificate in PEM"));
  EXPECT_THAT(error_with({one_.certificate, "hello"}), HasSubstr("no unencrypted private key"));
  EXPECT_THAT(error_with({one_.certificate, test::encrypt_key(one_.key)}),
              HasSubstr("no unencrypted private key"));
  std::filesystem::remove(dir_ / "key");
  EXPECT_THAT([&] { Credentials(config()).current(); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot read " + path("key"))));
}

}  // namespace
}  // namespace lookout::rest
