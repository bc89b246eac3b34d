// Staging memory of an engine: pinned slots on the host and slots on relay GPUs. It is bounded,
// allocated on demand, shared by all transfers of the engine, and freed with it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/wait.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

class Slots;

// The bytes that several users of one memory may allocate together. Thread safe; has no lock.
class Budget {
public:
    explicit Budget(std::size_t most) : most_(most) {}
    // False, and nothing taken, if that is more than what is left.
    [[nodiscard]] bool take(std::size_t bytes);
    // The same without the limit.
    void exceed(std::size_t bytes) { used_ += bytes; }
    void give_back(std::size_t bytes) { used_ -= bytes; }
    [[nodiscard]] std::size_t most() const { return most_; }
    [[nodiscard]] std::size_t used() const { return used_; }
    [[nodiscard]] std::size_t left() const { return most_ - std::min(most_, used_.load()); }

private:
    const std::size_t most_;
    std::atomic<std::size_t> used_{0};
};

// Bytes that were taken from a budget, and are given back at the end.
class BudgetShare {
public:
    BudgetShare(Budget& budget, std::size_t bytes) : budget_(&budget), bytes_(bytes) {}
    ~BudgetShare() {
        if (budget_ != nullptr) budget_->give_back(bytes_);
    }
    BudgetShare(BudgetShare&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    BudgetShare& operator=(BudgetShare&&) = delete;
    BudgetShare(const BudgetShare&) = delete;
    BudgetShare& operator=(const BudgetShare&) = delete;

private:
    Budget* budget_;
    std::size_t bytes_;
};

// A piece of staging memory, returned to its pool on destruction.
class Slot {
public:
    Slot() = default;
    Slot(Slots* owner, std::byte* data, std::size_t size)
        : owner_(owner), data_(data), size_(size) {}
    ~Slot() { release(); }
    Slot(Slot&& other) noexcept { *this = std::move(other); }
    Slot& operator=(Slot&& other) noexcept;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    void release() noexcept;
    // Never reuses the slot: a GPU may still access the memory, which stays in the budget and is
    // freed with the pool; never, if the GPU does not answer.
    void abandon(Settled why) noexcept;
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    Slots* owner_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

// A slab of memory, divided into slots.
class Slab {
public:
    virtual ~Slab() = default;
    [[nodiscard]] virtual std::byte* data() const = 0;
};

// A pool of slots with power-of-two sizes, cut from slabs, within a budget that it may share with
// others. Thread safe. take() never waits.
class Slots {
public:
    // `make` allocates a slab or throws. `changed` is called after a slot was returned or slots
    // were added, if await_change() asked for it.
    using Make = std::function<std::unique_ptr<Slab>(std::size_t bytes)>;
    // The budget must outlive the pool.
    Slots(Budget& budget, std::size_t slab_bytes, Make make, std::function<void()> changed);
    ~Slots() { budget_.give_back(bytes_); }
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    // A slot of at least `bytes`, or nullopt while the budget is used up. If none of the pool's is
    // in use, a single one may exceed the budget, so that every transfer can progress. Throws what
    // `make` throws if not even one slot is available.
    std::optional<Slot> take(std::size_t bytes);
    // Requests a call of `changed` at the next change. Call take() again after this.
    void await_change() { awaited_ = true; }

    [[nodiscard]] std::size_t bytes() const;  // allocated now
    [[nodiscard]] std::size_t budget() const { return budget_.most(); }

private:
    friend class Slot;
    struct Entry {
        std::unique_ptr<Slab> slab;
        std::size_t bytes = 0;
        std::size_t slot = 0;    // bytes of each slot
        std::size_t in_use = 0;  // slots
        bool abandoned = false;  // its slots are not used again
    };

    void add(std::unique_ptr<Slab> made, std::size_t bytes, std::size_t size);
    bool cut_idle(std::size_t size);
    void add_free(std::byte* data, std::size_t bytes, std::size_t size);
    void notify_change();
    void give_back(std::byte* data) noexcept;
    void abandon(std::byte* data, Settled why) noexcept;
    void forget_free(const std::byte* begin, const Entry& entry) noexcept;
    std::optional<Slot> take_free(std::size_t size);
    std::vector<std::unique_ptr<Slab>> evict_idle(std::size_t needed);
    std::size_t take_budget(std::size_t size);

    Budget& budget_;
    const std::size_t slab_bytes_;
    const Make make_;
    const std::function<void()> changed_;
    std::atomic<bool> awaited_{false};
    mutable std::mutex mutex_;
    std::mutex growing_;                                   // held while a slab is made
    std::map<std::byte*, Entry> slabs_;                    // by their start
    std::map<std::size_t, std::vector<std::byte*>> free_;  // by the size of a slot
    std::size_t bytes_ = 0;
    std::size_t in_use_ = 0;
};

// Memory at a NUMA node, in huge pages if available, and pinned for a device unless that is -1. If
// pinning fails, the memory is pageable and `on_failure` is called once with the reason.
std::unique_ptr<Slab> pinned_slab(std::size_t bytes, const NumaNode& node, int device,
                                  const std::function<void(const std::string&)>& on_failure);
std::unique_ptr<Slab> device_slab(std::size_t bytes, int device);

}  // namespace waywiser::transfer
