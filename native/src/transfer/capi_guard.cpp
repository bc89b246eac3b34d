#include "transfer/capi_guard.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "host/pages.hpp"
#include "transfer/file_end.hpp"
#include "transfer/process_state.hpp"

namespace waywiser::capi {
namespace {

FailureReport& last() {
    thread_local FailureReport failure;
    return failure;
}

waywiser_status status_of(const gpu::Error& error) {
    switch (error.kind()) {
        case gpu::Failure::out_of_memory: return WAYWISER_OUT_OF_MEMORY;
        case gpu::Failure::sticky: return WAYWISER_GPU_LOST;
        case gpu::Failure::unavailable: return WAYWISER_UNSUPPORTED;
        case gpu::Failure::other: break;
    }
    return WAYWISER_GPU;
}

constexpr std::uintptr_t kLastAddress = std::numeric_limits<std::uintptr_t>::max();
// From this size on it is worth a call of the system to check the end of an array.
constexpr std::size_t kLargeArray = std::size_t{1} << 28;

constexpr unsigned kTagShift = 56;

// Whether the program has memory at an address.
bool is_mapped(std::uintptr_t address) {
    const std::uintptr_t page = address & ~(std::uintptr_t{host::page_bytes()} - 1);
    unsigned char resident = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return mincore(reinterpret_cast<void*>(page), 1, &resident) == 0 || errno == EAGAIN;
}

FailureReport report_of_exception() {
    try {
        throw;
    } catch (const transfer::InvalidCopy& error) {
        return {WAYWISER_INVALID, error.what()};
    } catch (const transfer::ForkedProcess& error) {
        return {WAYWISER_FORKED, error.what()};
    } catch (const transfer::Cancelled& error) {
        return {WAYWISER_CANCELLED, error.what()};
    } catch (const transfer::MemoryInUse& error) {
        return {WAYWISER_IN_USE, error.what()};
    } catch (const transfer::FileError& error) {
        return {WAYWISER_IO, error.what(), error.error()};
    } catch (const gpu::Error& error) {
        return {status_of(error), error.what()};
    } catch (const NotSupported& error) {
        return {WAYWISER_UNSUPPORTED, error.what()};
    } catch (const std::length_error&) {
        return {WAYWISER_INVALID,
                "a count or a size is larger than memory can be: check what is passed"};
    } catch (const std::bad_alloc&) {
        return {WAYWISER_OUT_OF_MEMORY,
                "host memory is exhausted: free memory, or move fewer bytes at a time"};
    } catch (const std::exception& error) {
        return {WAYWISER_INTERNAL, error.what()};
    } catch (...) {
        return {WAYWISER_INTERNAL, "an unknown failure"};
    }
}

}  // namespace

FailureReport failure_report() noexcept {
    try {
        return report_of_exception();
    } catch (...) {
        return {.status = WAYWISER_OUT_OF_MEMORY};  // the message could not be copied
    }
}

const FailureReport& last_failure() { return last(); }

waywiser_status failed(FailureReport failure) noexcept {
    last() = std::move(failure);
    return last().status;
}

waywiser_status failed(waywiser_status status, const std::string& message) {
    try {
        return failed(FailureReport{status, message});
    } catch (...) {
        return failed(FailureReport{.status = status});
    }
}

void need(bool holds, const char* message) {
    if (!holds) throw transfer::InvalidCopy(message);
}

void need_entries(const void* given, std::size_t count, std::size_t entry_bytes,
                  const char* argument, const char* counted) {
    const auto start = reinterpret_cast<std::uintptr_t>(given);
    const bool fits = entry_bytes == 0 || count <= (kLastAddress - start) / entry_bytes;
    const std::size_t bytes = fits ? count * entry_bytes : 0;
    const std::uintptr_t last = start + bytes - 1;
    // ARM ignores the highest byte of an address, which need not be 0, but is the same in an array.
    const bool in_space = last >> kTagShift == start >> kTagShift;
    if (fits && (bytes < kLargeArray || (in_space && is_mapped(last)))) return;
    throw transfer::InvalidCopy("the argument " + std::string(counted) + " is " +
                                std::to_string(count) + ", and the array " + argument +
                                " ends before so many entries of " + std::to_string(entry_bytes) +
                                " bytes: pass their number");
}

void need_context(const waywiser_context* context) {
    need_argument(context, "context", "what waywiser_context_create gave");
}

void need_number(double timeout) {
    need(!std::isnan(timeout),
         "the timeout is not a number: pass seconds, or a negative number to wait without limit");
}

std::size_t first_size(const waywiser_options&) { return offsetof(waywiser_options, policy); }
std::size_t first_size(const waywiser_usage&) { return offsetof(waywiser_usage, gpu_bytes); }
std::size_t first_size(const waywiser_description&) {
    return offsetof(waywiser_description, registrations) + sizeof(std::size_t);
}
std::size_t first_size(const waywiser_operation&) {
    return offsetof(waywiser_operation, offset) + sizeof(std::uint64_t);
}
std::size_t first_size(const waywiser_transfer_info&) {
    return offsetof(waywiser_transfer_info, message) + sizeof(waywiser_transfer_info::message);
}
std::size_t first_size(const waywiser_tracer&) {
    return offsetof(waywiser_tracer, data) + sizeof(void*);
}

void check_size(std::size_t given, std::size_t first, const char* name) {
    constexpr std::size_t kMost = 4096;  // a larger size was never set
    if (given >= first && given <= kMost) return;
    throw transfer::InvalidCopy("the size of the " + std::string(name) + " is " +
                                std::to_string(given) + ": set it to sizeof(" + name + ")");
}

void take(const void* given, std::size_t given_bytes, void* known, std::size_t known_bytes,
          const char* name) {
    const std::span all(static_cast<const std::byte*>(given), given_bytes);
    const std::size_t common = std::min(given_bytes, known_bytes);
    const auto unknown = all.subspan(common);
    if (std::ranges::any_of(unknown, [](std::byte one) { return one != std::byte{}; })) {
        throw NotSupported("the " + std::string(name) +
                           " sets a field that this version of the library (" WAYWISER_VERSION
                           ") does not know: use a newer library");
    }
    std::memcpy(known, given, common);
}

std::size_t write_text(const std::string& whole, char* text, std::size_t capacity) {
    if (capacity > 0) {
        const std::size_t length = std::min(whole.size(), capacity - 1);
        std::memcpy(text, whole.data(), length);
        text[length] = '\0';
    }
    return whole.size() + 1;
}

}  // namespace waywiser::capi
