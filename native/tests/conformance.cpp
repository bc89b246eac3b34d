#include "conformance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "host/affinity.hpp"

namespace waywiser::test {
namespace {

constexpr std::size_t kPlacesPerKind = 2;
constexpr std::byte kGuardByte{0xEE};

// "0-3,8" of /sys, as far as this process may use them.
std::vector<int> listed_cpus(const std::filesystem::path& file) {
    const std::vector<int> allowed = host::allowed_cpus();
    std::vector<int> cpus;
    std::ifstream stream(file);
    for (std::string range; std::getline(stream, range, ',');) {
        std::istringstream text(range);
        int first = 0;
        if (!(text >> first)) continue;
        int last = first;
        if (text.get() == '-') text >> last;
        for (int cpu = first; cpu <= last; ++cpu) {
            if (std::ranges::find(allowed, cpu) != allowed.end()) cpus.push_back(cpu);
        }
    }
    return cpus;
}

std::vector<NumaNode> numa_nodes() {
    std::vector<NumaNode> nodes;
    for (int index = 0; index < 1024; ++index) {
        const std::filesystem::path node = "/sys/devices/system/node/node" + std::to_string(index);
        NumaNode known{index, listed_cpus(node / "cpulist")};
        if (!known.cpus.empty()) nodes.push_back(std::move(known));
    }
    if (nodes.empty()) nodes.push_back({0, host::allowed_cpus()});
    return nodes;
}

std::vector<Place> places(Place::Kind kind, const Machine& machine) {
    std::vector<Place> found;
    switch (kind) {
        case Place::Kind::numa:
            for (const NumaNode& node : machine.numa) found.push_back({kind, node.index, {}});
            break;
        case Place::Kind::gpu:
            for (const GpuPlace& gpu : machine.gpus) found.push_back({kind, gpu.index, {}});
            break;
        case Place::Kind::file:
            for (const FilePlace& file : machine.files) found.push_back({kind, 0, file.name});
            break;
    }
    if (found.size() > kPlacesPerKind) found.resize(kPlacesPerKind);
    return found;
}

std::vector<Place> places_of(const MemoryKind& memory, const Machine& machine) {
    std::vector<Place> found;
    for (const Place::Kind kind : memory.place_kinds())
        std::ranges::copy(places(kind, machine), std::back_inserter(found));
    return found;
}

}  // namespace

Machine this_machine() {
    Machine machine{.numa = numa_nodes(), .gpus = {}};
    for (int index = 0; index < gpu::device_count(); ++index) {
        const gpu::Device device = gpu::device(index);
        GpuPlace place{index, device.uuid, -1, {}, device.pageable_access};
        for (int other = 0; other < gpu::device_count(); ++other) {
            if (other != index && gpu::can_access_peer(index, other)) place.peers.push_back(other);
        }
        machine.gpus.push_back(std::move(place));
    }
    return machine;
}

std::vector<Memory> memories(const Machine& machine) {
    std::vector<Memory> found;
    for (const auto& kind : Memories::instance().entries()) {
        for (const Place& place : places_of(*kind, machine)) {
            found.push_back({kind->info().name, place, {}});
        }
    }
    return found;
}

std::vector<Path> paths(const Machine& machine) {
    std::vector<Path> found;
    for (const auto& executor : Executors::instance().entries()) {
        for (const Memory& source : memories(machine)) {
            for (const Memory& destination : memories(machine)) {
                found.push_back({source, destination, executor->info().name});
            }
        }
    }
    return found;
}

std::vector<Transfer> variations(const Path& path, const Machine& machine) {
    std::vector<Transfer> found{{path, 0, {}}};
    const Executor& executor = *Executors::instance().find(path.executor);
    for (const Parameter& parameter : executor.parameters({path, 0, {}}, machine)) {
        for (const std::string& choice : parameter.choices) {
            if (choice != parameter.fallback())
                found.push_back({path, 0, {{parameter.name, choice}}});
        }
    }
    for (Memory Path::* side : {&Path::source, &Path::destination}) {
        const MemoryKind& kind = *Memories::instance().find((path.*side).kind);
        for (const Parameter& parameter : kind.info().parameters) {
            for (const std::string& choice : parameter.choices) {
                if (choice == parameter.fallback()) continue;
                Transfer variant{path, 0, {}};
                (variant.path.*side).variant[parameter.name] = choice;
                found.push_back(std::move(variant));
            }
        }
    }
    return found;
}

std::vector<std::byte> sequence(std::size_t bytes, unsigned seed) {
    std::vector<std::byte> filled(bytes);
    std::uint32_t state = seed * 2654435761u + 1;
    for (std::byte& byte : filled) {
        state = state * 1664525u + 1013904223u;
        byte = static_cast<std::byte>(state >> 24);
    }
    return filled;
}

GuardedBuffer::GuardedBuffer(const Memory& memory, std::size_t most_bytes, const Machine& machine)
    : memory_(memory) {
    const MemoryKind& kind = *Memories::instance().find(memory.kind);
    by_cpu_ = kind.cpu_accessible();
    gpu_ = memory.on_gpu() ? memory.place.index : 0;
    buffer_ = kind.allocate(memory_, most_bytes + 2 * kGuard + kLargestOffset, machine);
}

View GuardedBuffer::view(std::size_t offset, std::size_t bytes) const {
    return {buffer_->data() + kGuard + offset, bytes, &memory_};
}

void GuardedBuffer::copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
    if (by_cpu_) {
        std::memcpy(to, from, bytes);
    } else {
        gpu::copy_sync(to, from, bytes, gpu_);
    }
}

void GuardedBuffer::write(std::size_t offset, const std::vector<std::byte>& guarded) const {
    copy(buffer_->data() + offset, guarded.data(), guarded.size());
}

std::vector<std::byte> GuardedBuffer::read(std::size_t offset, std::size_t bytes) const {
    std::vector<std::byte> guarded(bytes + 2 * kGuard);
    copy(guarded.data(), buffer_->data() + offset, guarded.size());
    return guarded;
}

Caller::Caller(const Transfer& transfer, const Machine& machine)
    : transfer_(transfer),
      machine_(machine),
      executor_(Executors::instance().find(transfer.path.executor)) {
    for (const int device : executor_->lanes(transfer, machine)) {
        streams_.push_back(std::make_unique<gpu::Stream>(device));
        lanes_.push_back(streams_.back().get());
    }
}

TimingMode Caller::timing() const { return executor_->timing(transfer_, machine_); }

std::unique_ptr<Execution> Caller::prepare() const {
    if (executor_->peer_access(transfer_, machine_).value_or(false)) {
        for (const GpuPlace& gpu : machine_.gpus) {
            for (const int peer : gpu.peers) gpu::enable_peer_access(gpu.index, peer);
        }
    }
    return executor_->prepare(transfer_, machine_, lanes_);
}

void Caller::run(Execution& execution, const View& source, const View& destination) const {
    execution.restore(source, destination);
    execution.start(source, destination);
    if (timing() == TimingMode::device) {
        lanes_.front()->synchronize();
    } else {
        execution.finish();
    }
}

std::string copy_once(const Caller& caller, Execution& execution, const GuardedBuffer& source,
                      std::size_t source_offset, const GuardedBuffer& destination,
                      std::size_t destination_offset, std::size_t bytes, unsigned seed) {
    constexpr std::size_t kGuard = GuardedBuffer::kGuard;
    const std::vector<std::byte> sent = sequence(bytes + 2 * kGuard, seed);
    std::vector<std::byte> expected(bytes + 2 * kGuard, kGuardByte);
    for (std::size_t i = 0; i < bytes; ++i) expected[kGuard + i] = ~sent[kGuard + i];  // poison
    source.write(source_offset, sent);
    destination.write(destination_offset, expected);
    std::copy_n(sent.begin() + kGuard, bytes, expected.begin() + kGuard);

    caller.run(execution, source.view(source_offset, bytes),
               destination.view(destination_offset, bytes));

    const std::vector<std::byte> arrived = destination.read(destination_offset, bytes);
    if (source.read(source_offset, bytes) != sent) return "the source was changed";
    const auto [wrong, right] = std::ranges::mismatch(arrived, expected);
    if (wrong == arrived.end()) return {};
    const auto at = wrong - arrived.begin() - static_cast<std::ptrdiff_t>(kGuard);
    const bool inside = at >= 0 && at < static_cast<std::ptrdiff_t>(bytes);
    return (inside ? "wrong byte at offset " : "byte outside was written at offset ") +
           std::to_string(at) + " of " + std::to_string(bytes) + ", from offset " +
           std::to_string(source_offset) + " to offset " + std::to_string(destination_offset);
}

}  // namespace waywiser::test
