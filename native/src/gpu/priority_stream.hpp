// A stream whose kernels start before those that wait in other streams.
#pragma once

#include <memory>

#include "gpu/gpu.hpp"

namespace waywiser::gpu {

// Does not synchronise with the default stream. Throws Error.
class PriorityStream {
public:
    explicit PriorityStream(int device) : handle_(create(device)), stream_(device, handle_.get()) {}
    [[nodiscard]] const Stream& operator*() const { return stream_; }
    [[nodiscard]] const Stream* operator->() const { return &stream_; }

private:
    static void* create(int device);

    std::unique_ptr<void, detail::StreamDeleter> handle_;
    Stream stream_;
};

}  // namespace waywiser::gpu
