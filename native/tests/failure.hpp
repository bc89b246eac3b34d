// How a call of the runtime failed, for comparison in tests.
#pragma once

#include <functional>
#include <optional>

#include "gpu/gpu.hpp"

namespace waywiser::test {

// None if the call succeeded.
inline std::optional<gpu::Failure> failure(const std::function<void()>& work) {
    try {
        work();
    } catch (const gpu::Error& error) {
        return error.kind();
    }
    return std::nullopt;
}

}  // namespace waywiser::test
