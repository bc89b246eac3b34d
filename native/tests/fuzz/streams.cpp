#include "fuzz/streams.hpp"

#include <array>
#include <utility>

#include "waywiser/transfer.h"

namespace waywiser::fuzz {
namespace {

constexpr std::array<const char*, kStreamKinds> kStreamNames = {
    "legacy", "per-thread", "blocking", "non-blocking", "other non-blocking"};
constexpr std::size_t kDefaultStreams = 2;

}  // namespace

HeldStream::HeldStream(fake::StreamThread& stream) : opened_(std::make_shared<fake::Mark>()) {
    stream.enqueue([mark = opened_] { mark->wait(); });
}

void HeldStream::open() {
    if (opened_) std::exchange(opened_, nullptr)->reach(fake::now());
}

Streams::Streams(int gpus) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
        for (const auto use : {gpu::StreamUse::blocking, gpu::StreamUse::non_blocking,
                               gpu::StreamUse::prioritized}) {
            own_.emplace_back(gpu, use);
        }
        for (const char* const name : kStreamNames) {
            names_.push_back(std::string(name) + " stream of GPU " + std::to_string(gpu));
        }
    }
}

const gpu::Stream& Streams::own(std::size_t stream) const {
    constexpr std::size_t kOwn = kStreamKinds - kDefaultStreams;
    return own_[stream / kStreamKinds * kOwn + stream % kStreamKinds - kDefaultStreams];
}

void* Streams::handle(std::size_t stream, bool names_gpu) const {
    switch (kind(stream)) {
        case StreamKind::legacy:
            return names_gpu ? WAYWISER_LEGACY_STREAM_OF(gpu(stream)) : nullptr;
        case StreamKind::per_thread:
            return names_gpu ? WAYWISER_PER_THREAD_STREAM_OF(gpu(stream))
                             : WAYWISER_PER_THREAD_STREAM;
        default: return own(stream).handle();
    }
}

fake::StreamThread& Streams::thread(std::size_t stream) const {
    switch (kind(stream)) {
        case StreamKind::legacy: return fake::legacy_stream(gpu(stream));
        case StreamKind::per_thread: return fake::per_thread_stream(gpu(stream));
        default: return fake::thread_of(own(stream));
    }
}

StreamSet Streams::after(std::size_t stream) const {
    const int device = gpu(stream);
    const StreamSet legacy = only(id(device, StreamKind::legacy));
    switch (kind(stream)) {
        case StreamKind::legacy:
            return legacy | only(id(device, StreamKind::per_thread)) |
                   only(id(device, StreamKind::blocking));
        case StreamKind::per_thread:
        case StreamKind::blocking: return only(stream) | legacy;
        default: return only(stream);
    }
}

void Streams::enqueue(std::size_t stream, std::function<void()> work) const {
    thread(stream).enqueue(std::move(work));
}

HeldStream Streams::hold(std::size_t stream) const { return HeldStream(thread(stream)); }

void Streams::wait(std::size_t stream) const { thread(stream).wait_all(); }

void Streams::wait_all() const {
    for (std::size_t stream = 0; stream < count(); ++stream) wait(stream);
}

}  // namespace waywiser::fuzz
