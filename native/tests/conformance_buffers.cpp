#include "conformance_buffers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "gpu/gpu.hpp"
#include "host/files.hpp"
#include "many_bytes.hpp"

namespace waywiser::test {
namespace {

constexpr std::byte kUntouched{0xEE};

const MemoryKind& kind_of(const Memory& memory) { return *Memories::instance().find(memory.kind); }

const Executor& executor_of(const Transfer& transfer) {
    return *Executors::instance().find(transfer.path.executor);
}

std::vector<std::byte> complement(const std::vector<std::byte>& bytes) {
    const NotRecorded own;
    std::vector<std::byte> flipped(bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::size_t some = std::min(sizeof(std::uint64_t), bytes.size() - at);
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, some);
        word = ~word;
        std::memcpy(flipped.data() + at, &word, some);
    }
    return flipped;
}

std::size_t guard_of(const Transfer& transfer, const Machine& machine) {
    if (starts_anywhere(transfer, machine)) return GuardedTransfer::kGuard;
    const Path& path = transfer.path;
    return std::max(kind_of(path.source).granule(), kind_of(path.destination).granule());
}

}  // namespace

bool starts_anywhere(const Transfer& transfer, const Machine& machine) {
    return !executor_of(transfer).in_place(transfer, machine) && !transfer.path.source.in_file() &&
           !transfer.path.destination.in_file();
}

GuardedBuffer::GuardedBuffer(const Memory& memory, std::size_t bytes, std::size_t guard,
                             const Machine& machine)
    : memory_(memory),
      by_cpu_(kind_of(memory).cpu_accessible()),
      writable_(kind_of(memory).writable(memory, machine)),
      gpu_(memory.on_gpu() ? memory.place.index : 0),
      guard_(guard),
      bytes_(bytes + 2 * guard),
      buffer_(kind_of(memory).allocate(memory, bytes_, machine)) {}

View GuardedBuffer::view(std::size_t offset, std::size_t bytes) const {
    const std::size_t at = guard_ + offset;
    View view{.data = nullptr, .bytes = bytes, .memory = &memory_};
    if (buffer_->file() < 0) {
        view.data = buffer_->data() + at;
    } else {
        view.file = buffer_->file();
        view.offset = buffer_->offset() + at;
    }
    return view;
}

void GuardedBuffer::write(const std::vector<std::byte>& all) const {
    if (!writable_) return;
    if (buffer_->file() >= 0) {
        host::write_fully(buffer_->file(), all.data(), all.size(), buffer_->offset());
    } else if (by_cpu_) {
        copy_bytes(buffer_->data(), all.data(), all.size());
    } else {
        gpu::copy_sync(buffer_->data(), all.data(), all.size(), gpu_);
    }
}

std::vector<std::byte> GuardedBuffer::read() const {
    std::vector<std::byte> all(bytes_);
    if (buffer_->file() >= 0) {
        host::read_fully(buffer_->file(), all.data(), all.size(), buffer_->offset());
    } else if (by_cpu_) {
        copy_bytes(all.data(), buffer_->data(), all.size());
    } else {
        gpu::copy_sync(all.data(), buffer_->data(), all.size(), gpu_);
    }
    return all;
}

namespace {

// Bytes from one slice to the next: whole granules if they may not start anywhere.
std::size_t stride(const Arrangement& side, std::size_t guard) {
    if (guard == GuardedTransfer::kGuard) return side.extent;
    return (side.extent + guard - 1) / guard * guard;
}

std::size_t extent_with_guard(const Arrangement& side, std::size_t guard, std::size_t times) {
    const std::size_t offset =
        guard == GuardedTransfer::kGuard ? GuardedTransfer::kLargestOffset : 0;
    return stride(side, guard) * (times - 1) + side.extent + offset;
}

}  // namespace

GuardedTransfer::GuardedTransfer(const Transfer& transfer, const Machine& machine,
                                 std::size_t times)
    : transfer_(transfer),
      times_(times),
      in_place_(executor_of(transfer).in_place(transfer, machine)),
      from_(arrange(transfer, Side::source)),
      to_(arrange(transfer, Side::destination)),
      guard_(guard_of(transfer, machine)),
      source_(transfer.path.source, extent_with_guard(from_, guard_, times), guard_, machine) {
    if (in_place_) return;
    destination_ = std::make_unique<GuardedBuffer>(
        transfer.path.destination, extent_with_guard(to_, guard_, times), guard_, machine);
}

std::size_t GuardedTransfer::start(std::size_t time, const Arrangement& side,
                                   std::size_t offset) const {
    return (guard_ == kGuard ? offset : 0) + time * stride(side, guard_);
}

View GuardedTransfer::arranged(const GuardedBuffer& buffer, std::size_t at, const Memory& memory,
                               const Arrangement& side) const {
    View view = buffer.view(at, transfer_.bytes);
    view.memory = &memory;
    if (side.kind != Layout::Kind::contiguous) view.arrangement = &side;
    return view;
}

View GuardedTransfer::source(std::size_t time) const {
    return arranged(source_, start(time, from_, offsets_.source), transfer_.path.source, from_);
}

View GuardedTransfer::destination(std::size_t time) const {
    const GuardedBuffer& buffer = in_place_ ? source_ : *destination_;
    return arranged(buffer, start(time, to_, offsets_.destination), transfer_.path.destination,
                    to_);
}

void GuardedTransfer::lay(Offsets offsets, unsigned seed) {
    offsets_ = offsets;
    sent_ = sequence(extent_with_guard(from_, guard_, times_) + 2 * guard_, seed);
    source_.write(sent_);
    if (!source_.writable()) sent_ = source_.read();
    expected_ = sent_;
    if (in_place_) return;
    expected_.assign(extent_with_guard(to_, guard_, times_) + 2 * guard_, kUntouched);
    std::vector<std::byte> before = expected_;
    const std::vector<std::byte> other = complement(sent_);
    for (std::size_t time = 0; time < times_; ++time) {
        for (std::size_t n = 0; n < from_.count; ++n) {
            const std::size_t from = guard_ + start(time, from_, offsets.source) + from_.offset(n);
            const std::size_t to = guard_ + start(time, to_, offsets.destination) + to_.offset(n);
            copy_bytes(expected_.data() + to, sent_.data() + from, from_.run);
            copy_bytes(before.data() + to, other.data() + from, from_.run);
        }
    }
    destination_->write(before);
}

std::string GuardedTransfer::wrong() const {
    if (!in_place_ && !same_bytes(source_.read(), sent_)) return "the source was changed";
    const std::vector<std::byte> arrived = (in_place_ ? source_ : *destination_).read();
    if (same_bytes(arrived, expected_)) return {};
    const auto [wrong, right] = std::ranges::mismatch(arrived, expected_);
    const bool inside = in_place_ || *right != kUntouched;
    const auto at = wrong - arrived.begin() - static_cast<std::ptrdiff_t>(guard_);
    return (inside ? "wrong byte at offset " : "byte outside was written at offset ") +
           std::to_string(at) + " of " + std::to_string(transfer_.bytes) + " from offset " +
           std::to_string(offsets_.source) + " to offset " + std::to_string(offsets_.destination);
}

}  // namespace waywiser::test
