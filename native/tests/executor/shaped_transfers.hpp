// Transfers in layouts, for tests of executors.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>

#include "conformance.hpp"

namespace waywiser::test {

inline Memory at(const char* kind, const char* place) { return {kind, Place::parse(place), {}}; }

inline Transfer in_list(const char* executor, const Memory& from, const Memory& to,
                        const char* scattered = "both") {
    const Layout list{Layout::Kind::list, {{"piece", "512"}, {"scattered", scattered}}};
    return {{from, to, executor}, 512UL * 12, {}, list};
}

inline Transfer in_box(const char* executor, const Memory& from, const Memory& to) {
    const Layout box{Layout::Kind::box, {{"width", "64"}, {"height", "8"}}};
    return {{from, to, executor}, 64UL * 8 * 5, {}, box};
}

// Why an executor does not move this; empty if it does.
inline std::string reason(const Transfer& transfer, const Machine& machine) {
    return unsupported_reason(transfer, machine).value_or("");
}

// Two GPUs with peer access to each other, and one without.
inline Machine three_gpus() {
    return {.numa = {{0, {0, 1, 2}}},
            .gpus = {{0, "a", -1, {1}}, {1, "b", -1, {0}}, {2, "c", -1, {}}},
            .files = {{"scratch", "/nowhere", true, std::size_t{1} << 30, ""}}};
}

// An execution that was started before, and its buffers.
struct Ready {
    Ready(const Transfer& transfer, const Machine& machine)
        : bytes(transfer, machine), caller(transfer, machine), execution(caller.prepare()) {
        EXPECT_EQ(again(), "");
    }
    std::string again() { return move_once(caller, *execution, bytes, {}, ++seed); }

    GuardedTransfer bytes;
    Caller caller;
    std::unique_ptr<Execution> execution;
    unsigned seed = 0;
};

}  // namespace waywiser::test
