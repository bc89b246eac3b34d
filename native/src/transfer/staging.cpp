#include "transfer/staging.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "host/pages.hpp"
#include "transfer/process_state.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kSmallestSlot = std::size_t{64} << 10;

class PinnedSlab final : public Slab {
public:
    PinnedSlab(std::size_t bytes, const NumaNode& node)
        : pages_(bytes, node, host::PageSize::huge, host::Placing::trusted) {}
    void pin(int device) { registration_.emplace(pages_.data(), pages_.bytes(), device); }
    [[nodiscard]] std::byte* data() const override { return pages_.data(); }

private:
    host::Pages pages_;
    std::optional<gpu::Registration> registration_;
};

class DeviceSlab final : public Slab {
public:
    DeviceSlab(std::size_t bytes, int device) : memory_(device, bytes) {}
    [[nodiscard]] std::byte* data() const override { return memory_.data(); }

private:
    gpu::DeviceBuffer memory_;
};

}  // namespace

Slot& Slot::operator=(Slot&& other) noexcept {
    if (this == &other) return *this;
    release();
    owner_ = std::exchange(other.owner_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
}

void Slot::release() noexcept {
    if (owner_ != nullptr && data_ != nullptr) owner_->give_back(data_);
    owner_ = nullptr;
    data_ = nullptr;
}

void Slot::abandon(Settled why) noexcept {
    if (owner_ != nullptr && data_ != nullptr) owner_->abandon(data_, why);
    owner_ = nullptr;
    data_ = nullptr;
}

bool Budget::take(std::size_t bytes) {
    std::size_t used = used_;
    do {
        if (bytes > most_ - std::min(most_, used)) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
}

Slots::Slots(Budget& budget, std::size_t slab_bytes, Make make, std::function<void()> changed)
    : budget_(budget),
      slab_bytes_(slab_bytes),
      make_(std::move(make)),
      changed_(std::move(changed)) {}

std::size_t Slots::bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
}

std::optional<Slot> Slots::take_free(std::size_t size) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[size];
    if (free.empty()) return std::nullopt;
    std::byte* const data = free.back();
    free.pop_back();
    ++std::prev(slabs_.upper_bound(data))->second.in_use;
    ++in_use_;
    return Slot(this, data, size);
}

// Removes slabs whose slots are all free, until `needed` more bytes fit into the budget.
std::vector<std::unique_ptr<Slab>> Slots::evict_idle(std::size_t needed) {
    std::vector<std::unique_ptr<Slab>> evicted;
    for (auto it = slabs_.begin(); it != slabs_.end() && needed > budget_.left();) {
        if (it->second.in_use != 0 || it->second.abandoned) {
            ++it;
            continue;
        }
        forget_free(it->first, it->second);
        bytes_ -= it->second.bytes;
        budget_.give_back(it->second.bytes);
        evicted.push_back(std::move(it->second.slab));
        it = slabs_.erase(it);
    }
    return evicted;
}

// Takes the bytes of the next slab for slots of a size from the budget, after freeing idle ones of
// other sizes; 0 if it is used up by others.
std::size_t Slots::take_budget(std::size_t size) {
    std::vector<std::unique_ptr<Slab>> evicted;  // freed without the lock
    const std::lock_guard lock(mutex_);
    evicted = evict_idle(std::max(size, std::min(slab_bytes_, budget_.most())));
    const std::size_t slab = std::max(size, std::min(slab_bytes_, budget_.left()) / size * size);
    if (budget_.take(slab)) return slab;
    if (in_use_ > 0) return 0;
    budget_.exceed(size);
    return size;
}

std::optional<Slot> Slots::take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallestSlot));
    if (auto slot = take_free(size)) return slot;
    std::unique_lock growing(growing_, std::try_to_lock);
    // Another thread is making a slab; slots may be available when it is done.
    if (!growing.owns_lock()) return std::nullopt;
    if (auto slot = take_free(size)) return slot;
    if (cut_idle(size)) {
        auto slot = take_free(size);
        growing.unlock();
        notify_change();
        return slot;
    }
    const std::size_t slab = take_budget(size);
    if (slab == 0) return std::nullopt;
    std::unique_ptr<Slab> made;
    try {
        made = make_(slab);
    } catch (...) {
        budget_.give_back(slab);
        growing.unlock();
        {
            const std::lock_guard lock(mutex_);
            if (in_use_ > 0) return std::nullopt;  // those in use come back
        }
        notify_change();  // threads that wait for this slab try again
        throw;
    }
    add(std::move(made), slab, size);
    auto slot = take_free(size);
    growing.unlock();  // first, so that notified threads find it unlocked
    notify_change();
    return slot;
}

// Cuts a slab whose slots are all free into slots of this size: pinning another one takes a hundred
// times as long. False if there is none.
bool Slots::cut_idle(std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto idle = std::ranges::find_if(slabs_, [size](const auto& one) {
        const Entry& entry = one.second;
        return entry.in_use == 0 && !entry.abandoned && entry.bytes >= size;
    });
    if (idle == slabs_.end()) return false;
    forget_free(idle->first, idle->second);
    add_free(idle->first, idle->second.bytes, size);
    idle->second.slot = size;
    return true;
}

void Slots::add_free(std::byte* data, std::size_t bytes, std::size_t size) {
    std::size_t slots = bytes / size;
    for (const auto& [at, entry] : slabs_) {
        if (entry.slot == size) slots += entry.bytes / size;
    }
    free_[size].reserve(slots);  // so that returning one never allocates
    for (std::size_t at = 0; at + size <= bytes; at += size) free_[size].push_back(data + at);
}

void Slots::add(std::unique_ptr<Slab> made, std::size_t bytes, std::size_t size) {
    const std::lock_guard lock(mutex_);
    std::byte* const data = made->data();
    add_free(data, bytes, size);
    slabs_.emplace(data, Entry{.slab = std::move(made), .bytes = bytes, .slot = size, .in_use = 0});
    bytes_ += bytes;
}

void Slots::notify_change() {
    if (awaited_.exchange(false)) changed_();
}

void Slots::give_back(std::byte* data) noexcept {
    {
        const std::lock_guard lock(mutex_);
        Entry& entry = std::prev(slabs_.upper_bound(data))->second;
        --entry.in_use;
        --in_use_;
        if (!entry.abandoned) free_[entry.slot].push_back(data);
    }
    notify_change();
}

void Slots::forget_free(const std::byte* begin, const Entry& entry) noexcept {
    const std::byte* const end = begin + entry.bytes;
    std::erase_if(free_[entry.slot],
                  [&](const std::byte* slot) { return slot >= begin && slot < end; });
}

// The whole slab is retired.
void Slots::abandon(std::byte* data, Settled why) noexcept {
    {
        const std::lock_guard lock(mutex_);
        const auto slab = std::prev(slabs_.upper_bound(data));
        Entry& entry = slab->second;
        --entry.in_use;
        --in_use_;
        if (why == Settled::no && entry.slab) keep_for_ever(entry.slab.release());
        if (!entry.abandoned) {
            entry.abandoned = true;
            forget_free(slab->first, entry);
        }
    }
    notify_change();
}

std::unique_ptr<Slab> pinned_slab(std::size_t bytes, const NumaNode& node, int device,
                                  const std::function<void(const std::string&)>& on_failure) {
    auto slab = std::make_unique<PinnedSlab>(bytes, node);
    if (device < 0) return slab;
    try {
        slab->pin(device);
    } catch (const gpu::Error& error) {
        if (error.kind() == gpu::Failure::sticky) throw;
        on_failure(error.what());
    }
    return slab;
}

std::unique_ptr<Slab> device_slab(std::size_t bytes, int device) {
    return std::make_unique<DeviceSlab>(bytes, device);
}

}  // namespace waywiser::transfer
