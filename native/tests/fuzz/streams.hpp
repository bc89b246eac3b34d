// The streams of one thread, and how their work is ordered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fake/handles.hpp"
#include "gpu/gpu.hpp"

namespace waywiser::fuzz {

enum class StreamKind { legacy, per_thread, blocking, non_blocking, other_non_blocking };
inline constexpr std::size_t kStreamKinds = 5;

// One bit for each stream of the thread.
using StreamSet = std::uint32_t;

// Holds back later work of a stream until it is opened, and opens when it is destroyed.
class HeldStream {
public:
    HeldStream() = default;
    explicit HeldStream(fake::StreamThread& stream);
    ~HeldStream() { open(); }
    HeldStream(HeldStream&& other) noexcept = default;
    HeldStream& operator=(HeldStream&&) = delete;
    HeldStream(const HeldStream&) = delete;
    HeldStream& operator=(const HeldStream&) = delete;
    void open();

private:
    std::shared_ptr<fake::Mark> opened_;
};

// Used by the thread that made it: the per-thread streams are its own.
class Streams {
public:
    explicit Streams(int gpus);

    [[nodiscard]] std::size_t count() const { return names_.size(); }
    [[nodiscard]] std::size_t id(int gpu, StreamKind kind) const {
        return static_cast<std::size_t>(gpu) * kStreamKinds + static_cast<std::size_t>(kind);
    }
    [[nodiscard]] int gpu(std::size_t stream) const {
        return static_cast<int>(stream / kStreamKinds);
    }
    [[nodiscard]] StreamKind kind(std::size_t stream) const {
        return static_cast<StreamKind>(stream % kStreamKinds);
    }
    // What a caller passes. A default stream is that of the thread's current GPU, or names its GPU.
    [[nodiscard]] void* handle(std::size_t stream, bool names_gpu) const;
    [[nodiscard]] const gpu::Stream& own(std::size_t stream) const;
    [[nodiscard]] const std::string& name(std::size_t stream) const { return names_[stream]; }
    // The streams in which later work starts after that which is in this stream now.
    [[nodiscard]] StreamSet after(std::size_t stream) const;
    static StreamSet only(std::size_t stream) { return StreamSet{1} << stream; }

    // The caller's own work; no point of the fake's faults is passed.
    void enqueue(std::size_t stream, std::function<void()> work) const;
    [[nodiscard]] HeldStream hold(std::size_t stream) const;
    void wait(std::size_t stream) const;
    void wait_all() const;

private:
    [[nodiscard]] fake::StreamThread& thread(std::size_t stream) const;

    std::vector<gpu::Stream> own_;  // those that are no default streams
    std::vector<std::string> names_;
};

}  // namespace waywiser::fuzz
