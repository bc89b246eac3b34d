// Streams and events.
#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::check;
using cuda::forget;
using cuda::raw;
using cuda::use;

void detail::StreamDeleter::operator()(void* handle) const noexcept {
    if (owned) forget(cudaStreamDestroy(static_cast<cudaStream_t>(handle)));
}
void detail::EventDeleter::operator()(void* handle) const noexcept {
    forget(cudaEventDestroy(static_cast<cudaEvent_t>(handle)));
}

Stream::Stream(int device, StreamUse use_for) : device_(device) {
    use(device);
    cudaStream_t stream = nullptr;
    if (use_for == StreamUse::prioritized) {
        int least = 0;
        int greatest = 0;
        WAYWISER_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        WAYWISER_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    } else {
        const bool blocking = use_for == StreamUse::blocking;
        const unsigned flags = blocking ? cudaStreamDefault : cudaStreamNonBlocking;
        WAYWISER_CUDA(cudaStreamCreateWithFlags(&stream, flags));
    }
    handle_.reset(stream);
}

void Stream::synchronize() const { WAYWISER_CUDA(cudaStreamSynchronize(raw(*this))); }

bool Stream::done() const {
    const cudaError_t code = cudaStreamQuery(raw(*this));
    if (code == cudaErrorNotReady) {
        forget(code);  // no error, but the runtime keeps it like one
        return false;
    }
    check(code, "cudaStreamQuery");
    return true;
}

Event::Event(int device, EventUse use_for) {
    use(device);
    cudaEvent_t event = nullptr;
    const unsigned flags = use_for == EventUse::timing ? cudaEventDefault : cudaEventDisableTiming;
    WAYWISER_CUDA(cudaEventCreateWithFlags(&event, flags));
    handle_.reset(event);
}

void Event::record(const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaEventRecord(raw(*this), raw(stream)));
}

void Event::synchronize() const { WAYWISER_CUDA(cudaEventSynchronize(raw(*this))); }

bool Event::done() const {
    const cudaError_t code = cudaEventQuery(raw(*this));
    if (code == cudaErrorNotReady) {
        forget(code);  // no error, but the runtime keeps it like one
        return false;
    }
    check(code, "cudaEventQuery");
    return true;
}

void wait(const Stream& stream, const Event& event) {
    use(stream.device());
    WAYWISER_CUDA(cudaStreamWaitEvent(raw(stream), raw(event), 0));
}

double seconds_between(const Event& start, const Event& stop) {
    float milliseconds = 0;
    WAYWISER_CUDA(cudaEventElapsedTime(&milliseconds, raw(start), raw(stop)));
    return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace waywiser::gpu
