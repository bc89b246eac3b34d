// Staging memory of an engine: pinned slots on the host and slots on relay GPUs. Bounded, made when
// it is first needed, used by all transfers of the engine, and freed with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

class Slots;

// A piece of staging memory; it goes back when it is destroyed.
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
    // Gives it up for good: a GPU may still use the memory, which stays until the pool ends.
    void abandon() noexcept;
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    Slots* owner_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

// A slab of memory that slots are cut from.
class Slab {
public:
    virtual ~Slab() = default;
    [[nodiscard]] virtual std::byte* data() const = 0;
};

// Slots of powers of two, cut from slabs, within a budget. Thread safe. take() never waits.
class Slots {
public:
    // `make` allocates a slab of so many bytes; it throws where it cannot. `changed` is called
    // where somebody awaits a change, after a slot has come back or there are more.
    using Make = std::function<std::unique_ptr<Slab>(std::size_t bytes)>;
    Slots(std::size_t budget, std::size_t slab_bytes, Make make, std::function<void()> changed);
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    // A slot of at least so many bytes, or nothing while others hold what the budget allows. A
    // single slot is given even where it exceeds the budget: every transfer makes progress with
    // one. Throws what `make` throws if not even one can be had.
    std::optional<Slot> take(std::size_t bytes);
    // Has `changed` called at the next change. Who found no slot looks again after this.
    void await_change() { awaited_ = true; }

    [[nodiscard]] std::size_t bytes() const;  // allocated now
    [[nodiscard]] std::size_t budget() const { return budget_; }

private:
    friend class Slot;
    struct Entry {
        std::unique_ptr<Slab> slab;
        std::size_t bytes = 0;
        std::size_t slot = 0;    // bytes of each of its slots
        std::size_t in_use = 0;  // slots
        bool abandoned = false;  // none of its slots is used again
    };

    void add(std::unique_ptr<Slab> made, std::size_t bytes, std::size_t size);
    bool cut_idle(std::size_t size);
    void add_free(std::byte* data, std::size_t bytes, std::size_t size);
    void tell_change();
    void give_back(std::byte* data) noexcept;
    void abandon(std::byte* data) noexcept;
    void forget_free(const std::byte* begin, const Entry& entry) noexcept;
    std::optional<Slot> take_free(std::size_t size);
    std::vector<std::unique_ptr<Slab>> evict_idle(std::size_t needed);
    std::size_t make_room(std::size_t size);

    const std::size_t budget_;
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

// Pinned memory at a NUMA node, in huge pages where the system gives them. If it cannot be pinned,
// it is pageable, and `on_failure` is told once why.
std::unique_ptr<Slab> pinned_slab(std::size_t bytes, const NumaNode& node, int device,
                                  const std::function<void(const std::string&)>& on_failure);
std::unique_ptr<Slab> device_slab(std::size_t bytes, int device);

}  // namespace waywiser::transfer
