// What is known of calls and of what they cause, without CUPTI's forms.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "trace/sites.hpp"

namespace waywiser::trace {

enum class Operation : std::uint8_t { Copy, PeerCopy, Set, LibraryCopy };
enum class Kind : std::uint8_t { Unknown, Pageable, Pinned, Device, Array, Managed };
enum class Direction : std::uint8_t { Unknown, ToDevice, ToHost, OnDevice, OnHost, Peer };

struct End {
    Kind kind = Kind::Unknown;
    std::int32_t gpu = -1;  // -1: none
    auto operator<=>(const End&) const = default;
};

// One activity of a GPU.
struct Activity {
    enum class What : std::uint8_t { Transfer, Kernel, Collective };
    What what = What::Transfer;
    Operation operation = Operation::Copy;
    Direction direction = Direction::Unknown;
    bool graph = false, asynchronous = false;
    std::int32_t gpu = 0;
    std::uint32_t stream = 0, correlation = 0;
    std::uint64_t start = 0, end = 0, bytes = 0;
    std::uint32_t count = 1;  // copies that this is the record of
    std::uint32_t name = 0;   // of a kernel
    End from, to;
};

// Where some pages of a copy's host memory were before it.
struct PageSample {
    static constexpr std::size_t kNodes = 4;
    std::uint8_t sampled = 0, absent = 0;
    std::array<std::uint8_t, kNodes> pages{};
    std::array<std::int16_t, kNodes> nodes{};
};

enum class CallKind : std::uint8_t {
    Copy,  // and sets of memory, and launches of graphs that may hold some
    Wait,
    PinAllocate,
    PinRegister,
    PinFree,
    Unregister,
    PeriodEnd,  // no call of CUDA: the thread slept between two, or it has ended
};

// One call of CUDA that has returned.
struct Call {
    CallKind kind = CallKind::Copy;
    bool asynchronous = false;
    std::array<std::uint32_t, 2> correlations{};  // 0: none
    SiteId site = kUnknownSite;
    std::uint64_t begin = 0, end = 0;
    std::uint64_t bytes = 0;       // of pinned memory
    std::uint32_t waited_for = 0;  // of Wait: correlation of the copy that it directly follows
    std::uint64_t library_transfer = 0;  // made by the transfer library for this transfer
    // Of Copy: the number of the thread's busy period. Of PeriodEnd: of the one that ends, and
    // whether a sleep ends it.
    std::uint64_t period = 0;
    bool slept = false;
    // Of Copy: whether its host address is known, and its line has just copied there before.
    bool addressed = false, repeated = false;
    PageSample pages;
};

// A migration of managed memory, or faults.
struct Managed {
    enum class What : std::uint8_t { ToDevice, ToHost, OnDevice, Fault };
    What what = What::ToDevice;
    std::int32_t gpu = -1;
    std::uint64_t count = 0, bytes = 0, nanoseconds = 0;
};

struct GroupKey {
    SiteId site = kUnknownSite;
    Operation operation = Operation::Copy;
    Direction direction = Direction::Unknown;
    bool graph = false;
    End from, to;
    std::uint8_t bytes_log2 = 0;
    auto operator<=>(const GroupKey&) const = default;
};

// A copy by the transfer library: announced when it is called, and complete when it has ended.
struct LibraryCopy {
    std::uint64_t id = 0;
    GroupKey key;
    std::uint64_t bytes = 0, call_nanoseconds = 0, ended = 0;  // `ended` 0: not yet
    bool asynchronous = false;
    PageSample pages;
};

}  // namespace waywiser::trace
