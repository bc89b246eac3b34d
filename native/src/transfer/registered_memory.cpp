#include "transfer/registered_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "host/pages.hpp"
#include "transfer/describe.hpp"
#include "transfer/limits.hpp"
#include "transfer/page_locking.hpp"
#include "transfer/process_state.hpp"
#include "transfer/side.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {
namespace {

struct RegisteredMemory {
    std::size_t bytes = 0;
    bool changing = true;  // a thread registers or unregisters it, without the lock
    OwnerProcess process;
    std::vector<gpu::Registration> registrations;
};

// Never destroyed: the memory stays registered until the process ends. See lock_process_tables().
struct AllRegistered {
    std::map<std::uintptr_t, std::unique_ptr<RegisteredMemory>> memory;  // by its address
    std::vector<std::unique_ptr<RegisteredMemory>> of_parents;  // which must not be destroyed here
};

AllRegistered& all_registered() {
    static AllRegistered& known = *new AllRegistered();
    return known;
}

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

std::string hexadecimal(std::uintptr_t address) {
    constexpr int kBase = 16;
    constexpr char kDigits[] = "0123456789abcdef";
    std::string digits;
    for (; address > 0; address /= kBase) digits.insert(digits.begin(), kDigits[address % kBase]);
    return "0x" + digits;
}

// "the 4096 bytes at 0x7f..."
std::string named(std::uintptr_t start, std::size_t bytes) {
    return "the " + std::to_string(bytes) + " bytes at " + hexadecimal(start);
}

// Reserves the range for a registration. Throws InvalidCopy if one overlaps it.
RegisteredMemory& reserve(std::uintptr_t start, std::size_t bytes) {
    auto made = std::make_unique<RegisteredMemory>();
    made->bytes = bytes;
    AllRegistered& all = all_registered();
    const auto lock = lock_process_tables();
    auto it = all.memory.upper_bound(start);
    if (it != all.memory.begin()) --it;  // they do not overlap each other
    while (it != all.memory.end() && it->first < start + bytes) {
        const auto& [other, known] = *it;
        if (other + known->bytes <= start) {
            ++it;
        } else if (known->process.forked()) {
            all.of_parents.push_back(std::move(it->second));
            it = all.memory.erase(it);
        } else {
            throw InvalidCopy("register: " + named(start, bytes) + " overlap " +
                              named(other, known->bytes) +
                              ", which are registered: unregister those first, or register all of "
                              "the memory once");
        }
    }
    return *all.memory.emplace(start, std::move(made)).first->second;
}

void forget_registered(std::uintptr_t start) {
    std::unique_ptr<RegisteredMemory> gone;
    const auto lock = lock_process_tables();
    const auto known = all_registered().memory.find(start);
    gone = std::move(known->second);
    all_registered().memory.erase(known);
}

// Throws InvalidCopy for memory that the GPU runtime knows.
void need_pageable(void* data, std::size_t bytes) {
    for (const Segment& part : segments(data, bytes)) {
        if (part.info.kind == gpu::PointerKind::pageable) continue;
        constexpr std::array kKinds{"pageable", "pinned", "memory of a GPU", "managed memory"};
        throw InvalidCopy("register: of " + named(address_of(data), bytes) + ", " +
                          std::to_string(part.bytes) + " at " + hexadecimal(address_of(part.data)) +
                          " are " + kKinds.at(static_cast<std::size_t>(part.info.kind)) +
                          " already: register only pageable memory of the host");
    }
}

// The bytes of a range whose pages do not exist yet: page-locking makes them. Stops when they are
// more than `most`. Throws InvalidCopy if a part is not mapped.
std::size_t bytes_without_pages(const void* data, std::size_t bytes, std::size_t most) {
    constexpr std::size_t kPages = std::size_t{1} << 16;  // of one call
    const std::size_t page = host::page_bytes();
    const std::uintptr_t end = address_of(data) + bytes;
    std::vector<unsigned char> resident(std::min(kPages, bytes / page + 2));
    std::size_t missing = 0;
    for (std::uintptr_t at = address_of(data) & ~(page - 1); at < end && missing <= most / page;) {
        const std::size_t pages = std::min(resident.size(), (end - at + page - 1) / page);
        if (mincore(reinterpret_cast<void*>(at), pages * page, resident.data()) == 0) {
            missing += static_cast<std::size_t>(std::count_if(
                resident.begin(), resident.begin() + static_cast<std::ptrdiff_t>(pages),
                [](unsigned char one) { return (one & 1U) == 0; }));
        } else if (errno == ENOMEM) {
            throw InvalidCopy("register: a part of " + named(address_of(data), bytes) +
                              " is not mapped in this process: check the address and the size");
        }
        at += pages * page;
    }
    return missing * page;
}

std::string locked_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return "not limited";
    }
    return std::to_string(limit.rlim_cur) + " bytes";
}

[[noreturn]] void reject_amount(std::size_t bytes, const std::string& why) {
    throw TooMuchToPin("register: " + std::to_string(bytes) + " bytes cannot be page-locked (" +
                       why + "): " + std::to_string(available_memory()) +
                       " bytes of host memory are available, and locked memory is " +
                       locked_limit() +
                       " (ulimit -l): register less, free memory, or raise the limit");
}

std::vector<gpu::Registration> page_locked(void* data, std::size_t bytes) {
    need_pageable(data, bytes);
    // Without enough memory the system would kill a process.
    const std::size_t available = available_memory();
    const std::size_t missing = bytes_without_pages(data, bytes, available);
    if (missing > available) {
        reject_amount(bytes,
                      "more than " + std::to_string(available) + " of them have no pages yet");
    }
    try {
        return lock_pages(static_cast<std::byte*>(data), bytes);
    } catch (const gpu::Error& error) {
        if (error.kind() == gpu::Failure::out_of_memory) reject_amount(bytes, error.what());
        // What is not at the start of a page is not found beforehand.
        if (!error.name().ends_with("AlreadyRegistered")) throw;
        throw InvalidCopy("register: a part of " + named(address_of(data), bytes) +
                          " is page-locked already, by another library or in a page that it shares "
                          "with registered memory (" +
                          error.what() + "): unlock that first, or leave this memory as it is");
    }
}

[[noreturn]] void reject_address(const AllRegistered& all, std::uintptr_t start) {
    std::string inside;
    const auto after = all.memory.upper_bound(start);
    if (after != all.memory.begin()) {
        const auto& [other, known] = *std::prev(after);
        if (start < other + known->bytes) {
            inside = ", which is inside of " + named(other, known->bytes);
        }
    }
    throw InvalidCopy("unregister: no registration begins at " + hexadecimal(start) + inside +
                      " (" + std::to_string(all.memory.size()) +
                      " are known): pass the address that was registered, once");
}

}  // namespace

void register_memory(void* data, std::size_t bytes) {
    check_range(data, bytes, "register", "data");
    if (bytes == 0) {
        throw InvalidCopy("register: 0 bytes cannot be page-locked: pass the size of the memory");
    }
    if (gpu::device_count() == 0) {
        const std::string reason = gpu::unavailable_reason();
        throw NotSupported("register: memory cannot be pinned without a GPU: " +
                           (reason.empty() ? "this process is allowed no GPU" : reason) +
                           ": leave it pageable");
    }
    const std::uintptr_t start = address_of(data);
    RegisteredMemory& memory = reserve(start, bytes);
    try {
        memory.registrations = page_locked(data, bytes);
    } catch (...) {
        forget_registered(start);
        throw;
    }
    const auto lock = lock_process_tables();
    memory.changing = false;
}

void unregister_memory(void* data) {
    const std::uintptr_t start = address_of(data);
    AllRegistered& all = all_registered();
    RegisteredMemory* memory = nullptr;
    {
        const auto lock = lock_process_tables();
        const auto known = all.memory.find(start);
        if (known == all.memory.end()) reject_address(all, start);
        memory = known->second.get();
        if (memory->process.forked()) return;
        if (memory->changing) {
            throw InvalidCopy("unregister: another thread registers or unregisters " +
                              named(start, memory->bytes) + ": unregister memory once");
        }
        memory->changing = true;
    }
    try {
        wait_for_gpus();
    } catch (const gpu::Error& error) {
        const auto lock = lock_process_tables();
        memory->changing = false;
        throw PossiblyInUse("unregister: a GPU may still use " + named(start, memory->bytes) +
                            " (" + error.what() +
                            "): they stay registered; call again when no stream is captured");
    }
    memory->registrations.clear();
    forget_registered(start);
}

}  // namespace waywiser::transfer
