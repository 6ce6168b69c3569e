// Reference-counted copy-on-write blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace lookout::apiserver::storage {

/// The base class for BlockPtr. A copy has its own reference count.
class SharedBlock {
 public:
  SharedBlock() = default;
  SharedBlock(const SharedBlock& /*other*/) {}
  SharedBlock& operator=(const SharedBlock&) = delete;

 private:
  template <class T>
  friend class BlockPtr;
  mutable std::atomic<std::uint32_t> references_{1};
};

/// Like std::shared_ptr, but unique() is exact and synchronizes with other threads' releases, so that
/// their earlier accesses have completed. (std::shared_ptr::use_count() does not guarantee this.)
template <class T>
class BlockPtr {
 public:
  BlockPtr() = default;
  explicit BlockPtr(T* adopted) : block_(adopted) {}
  BlockPtr(const BlockPtr& other) : block_(other.block_) {
    if (block_ != nullptr) block_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  BlockPtr(BlockPtr&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockPtr& operator=(BlockPtr other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockPtr() {
    if (block_ != nullptr && block_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete block_;
  }

  T& operator*() const { return *block_; }
  T* operator->() const { return block_; }
  bool unique() const { return block_->references_.load(std::memory_order_acquire) == 1; }

 private:
  T* block_ = nullptr;
};

template <class T, class... Args>
BlockPtr<T> make_block(Args&&... args) {
  return BlockPtr<T>(new T(std::forward<Args>(args)...));
}

}  // namespace lookout::apiserver::storage
