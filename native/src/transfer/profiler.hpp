// Ranges of threads that a profiler shows, by NVTX: Nsight Systems does, and what else sets
// NVTX_INJECTION64_PATH.
#pragma once

#include <atomic>
#include <exception>
#include <string>

namespace waywiser::transfer {

namespace detail {
using ProfilerFunction = void (*)();
// What the profiler calls at the start and the end of a range; nullptr without a profiler, which
// may also set them later.
extern ProfilerFunction profiler_push;
extern ProfilerFunction profiler_pop;
// Returns whether there is a profiler.
bool push_range(const std::string& name) noexcept;
void pop_range() noexcept;
}  // namespace detail

// Loads the profiler that started this process, if one did. Only the first call does anything.
void find_profiler();

// A range of the calling thread, from the constructor to the destructor. Without a profiler it
// takes one load and a branch.
class ProfilerRange {
public:
    // `name` returns the text that the profiler shows; called only if there is a profiler.
    template <class Name>
    explicit ProfilerRange(const Name& name) noexcept {
        if (std::atomic_ref(detail::profiler_push).load(std::memory_order_acquire) == nullptr) {
            return;
        }
        try {
            open_ = detail::push_range(name());
        } catch (const std::exception&) {
            open_ = false;  // there is no memory for the name
        }
    }
    ~ProfilerRange() {
        if (open_) detail::pop_range();
    }
    ProfilerRange(const ProfilerRange&) = delete;
    ProfilerRange& operator=(const ProfilerRange&) = delete;

private:
    bool open_ = false;
};

}  // namespace waywiser::transfer
