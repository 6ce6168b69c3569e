#include "lookout/apiserver/storage/transformer.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <utility>

#include "lookout/base/detail/free_with.h"

namespace lookout::apiserver::storage {
namespace {

constexpr std::size_t kNonce = 12;
constexpr std::size_t kTag = 16;
constexpr std::string_view kEncrypted = "k8s:enc:";

class Identity final : public Transformer {
 public:
  Read from_storage(std::string stored, std::string_view /*context*/) const override {
    if (stored.starts_with(kEncrypted))
      throw TransformError("identity transformer tried to read encrypted data");
    return {std::move(stored), false};
  }
  std::string to_storage(std::string value, std::string_view /*context*/) const override {
    return value;
  }
};

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, lookout::detail::FreeWith<EVP_CIPHER_CTX_free>>;

unsigned char* bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
int length(std::string_view text) { return static_cast<int>(text.size()); }

void demand(int result) {
  if (result != 1) throw Error("OpenSSL cannot do AES-GCM");
}

class AesGcm final : public Transformer {
 public:
  explicit AesGcm(std::string_view secret) : secret_(secret) {
    switch (secret.size()) {
      case 16:
        cipher_ = EVP_aes_128_gcm();
        break;
      case 24:
        cipher_ = EVP_aes_192_gcm();
        break;
      case 32:
        cipher_ = EVP_aes_256_gcm();
        break;
      default:
        throw InvalidArgument(
            fmt::format("a key for AES-GCM has 16, 24 or 32 bytes, not {}", secret.size()));
    }
  }

  // Nonce, encrypted value, tag, as in Go's cipher.AEAD.
  Read from_storage(std::string stored, std::string_view context) const override {
    if (stored.size() < kNonce + kTag)
      throw TransformError("the stored data was shorter than the required size");
    const std::size_t size = stored.size() - kNonce - kTag;
    const Cipher cipher(EVP_CIPHER_CTX_new());
    demand(EVP_DecryptInit_ex(cipher.get(), cipher_, nullptr, bytes(std::string_view(secret_)),
                              bytes(stored)));
    int done = 0;
    demand(EVP_DecryptUpdate(cipher.get(), nullptr, &done, bytes(context), length(context)));
    Read read;
    read.value.resize(size);
    demand(EVP_DecryptUpdate(cipher.get(), bytes(read.value), &done, bytes(stored) + kNonce,
                             static_cast<int>(size)));
    demand(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(kTag),
                               stored.data() + kNonce + size));
    if (EVP_DecryptFinal_ex(cipher.get(), bytes(read.value) + done, &done) != 1)
      throw TransformError("cipher: message authentication failed");
    return read;
  }

  std::string to_storage(std::string value, std::string_view context) const override {
    std::string out(kNonce + value.size() + kTag, '\0');
    if (RAND_bytes(bytes(out), static_cast<int>(kNonce)) != 1)
      throw Error("OpenSSL cannot generate random numbers");
    const Cipher cipher(EVP_CIPHER_CTX_new());
    demand(EVP_EncryptInit_ex(cipher.get(), cipher_, nullptr, bytes(std::string_view(secret_)),
                              bytes(out)));
    int done = 0;
    demand(EVP_EncryptUpdate(cipher.get(), nullptr, &done, bytes(context), length(context)));
    demand(EVP_EncryptUpdate(cipher.get(), bytes(out) + kNonce, &done,
                             bytes(std::string_view(value)), length(value)));
    demand(EVP_EncryptFinal_ex(cipher.get(), bytes(out) + kNonce + done, &done));
    demand(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(kTag),
                               out.data() + kNonce + value.size()));
    return out;
  }

 private:
  const std::string secret_;
  const EVP_CIPHER* cipher_ = nullptr;
};

class Prefixes final : public Transformer {
 public:
  explicit Prefixes(std::vector<PrefixedTransformer> transformers)
      : transformers_(std::move(transformers)) {
    if (transformers_.empty()) throw InvalidArgument("no transformers");
  }

  // Several keys may have the same prefix: the first that can decrypt the value is used.
  Read from_storage(std::string stored, std::string_view context) const override {
    std::string why;
    for (const PrefixedTransformer& one : transformers_) {
      if (!stored.starts_with(one.prefix)) continue;
      // The identity is the one without a prefix.
      if (one.prefix.empty() && stored.starts_with(kEncrypted)) continue;
      try {
        Read read = one.transformer->from_storage(stored.substr(one.prefix.size()), context);
        read.stale = read.stale || &one != &transformers_.front();
        return read;
      } catch (const TransformError& e) {
        if (why.empty()) why = e.what();
      }
    }
    throw TransformError(why.empty() ? "no matching prefix found" : why);
  }

  std::string to_storage(std::string value, std::string_view context) const override {
    const PrefixedTransformer& first = transformers_.front();
    return first.prefix + first.transformer->to_storage(std::move(value), context);
  }

 private:
  const std::vector<PrefixedTransformer> transformers_;
};

}  // namespace

TransformerPtr identity_transformer() {
  static const auto kIdentity = std::make_shared<const Identity>();
  return kIdentity;
}

TransformerPtr aes_gcm_transformer(std::string_view secret) {
  return std::make_shared<const AesGcm>(secret);
}

TransformerPtr prefix_transformer(std::vector<PrefixedTransformer> transformers) {
  return std::make_shared<const Prefixes>(std::move(transformers));
}

TransformerPtr aes_gcm_encryption(const std::vector<EncryptionKey>& keys, bool reads_plain) {
  std::vector<PrefixedTransformer> all;
  all.reserve(keys.size() + 1);
  for (const EncryptionKey& key : keys)
    all.push_back(
        {fmt::format("k8s:enc:aesgcm:v1:{}:", key.name), aes_gcm_transformer(key.secret)});
  if (reads_plain) all.push_back({"", identity_transformer()});
  return prefix_transformer(std::move(all));
}

}  // namespace lookout::apiserver::storage
