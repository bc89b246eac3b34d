#include "conformance.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "case_stride.hpp"
#include "host/affinity.hpp"

namespace waywiser::test {
namespace {

constexpr std::size_t kPlacesPerKind = 2;
constexpr std::size_t kScratchBytes = std::size_t{1}
                                      << 30;  // maximum that tests may use of a folder
// For the file that is only read: the part that tests read, and a hole after it.
constexpr std::size_t kNamedBytes = std::size_t{160} << 20;
constexpr std::size_t kNamedContent = std::size_t{8} << 20;

// Parses "0-3,8" of /sys and keeps CPUs that this process may use.
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
        case Place::Kind::rank: break;  // in other processes
    }
    if (kind != Place::Kind::file && found.size() > kPlacesPerKind) found.resize(kPlacesPerKind);
    return found;
}

std::vector<Place> places_of(const MemoryKind& memory, const Machine& machine) {
    std::vector<Place> found;
    for (const Place::Kind kind : memory.place_kinds())
        std::ranges::copy(places(kind, machine), std::back_inserter(found));
    return found;
}

// A temporary folder of the process, removed at its end, but not at that of a child.
class Folder {
public:
    explicit Folder(const std::filesystem::path& in)
        : path_(in / ("waywiser-test-" + std::to_string(::getpid()))) {
        std::error_code failed;
        std::filesystem::create_directory(path_, failed);
        made_ = !failed;
    }
    ~Folder() {
        if (::getpid() == owner_) remove();
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] bool made() const { return made_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    void remove() const {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

private:
    std::filesystem::path path_;
    const pid_t owner_ = ::getpid();
    bool made_ = false;
};

struct Folders {
    Folder disk{::testing::TempDir()};
    Folder memory{"/dev/shm"};
};

Folders& folders() {
    static Folders all;
    return all;
}

std::filesystem::path named_file(const Folder& folder) {
    const std::filesystem::path path = folder.path() / "named";
    const std::vector<std::byte> content = sequence(kNamedContent, 77);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), kNamedContent);
    std::filesystem::resize_file(path, kNamedBytes);
    return path;
}

std::vector<FilePlace> file_places() {
    const auto& [disk, memory] = folders();
    static const std::filesystem::path named = disk.made() ? named_file(disk) : "";
    std::vector<FilePlace> found;
    if (disk.made()) {
        found.push_back({"scratch", disk.path(), true, kScratchBytes, ""});
        found.push_back({named, named, false, kNamedBytes, ""});
    }
    if (memory.made()) found.push_back({"tmpfs", memory.path(), true, kScratchBytes, "tmpfs"});
    return found;
}

}  // namespace

void remove_files() {
    folders().disk.remove();
    folders().memory.remove();
}

Machine this_machine() {
    Machine machine{.numa = numa_nodes(), .gpus = {}, .files = file_places()};
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

std::vector<Shaped> awkward_layouts() {
    const auto list = [](const char* piece, const char* scattered, std::size_t pieces) {
        return Shaped{{Layout::Kind::list, {{"piece", piece}, {"scattered", scattered}}},
                      std::stoul(piece) * pieces};
    };
    const auto box = [](const char* width, const char* height, const char* pitch, const char* rows,
                        std::size_t planes) {
        return Shaped{{Layout::Kind::box,
                       {{"width", width}, {"height", height}, {"pitch", pitch}, {"rows", rows}}},
                      std::stoul(width) * std::stoul(height) * planes};
    };
    return few_of(std::vector{
        list("1", "both", 37), list("7", "source", 41), list("9", "destination", 33),
        list("512", "both", 67), list("4099", "both", 3), list("36", "both", 1),
        box("3", "5", "7", "6", 3), box("16", "4", "32", "8", 5), box("8", "1", "8", "1", 6),
        box("520", "33", "1024", "34", 2), box("4099", "2", "4100", "2", 1)});
}

std::vector<Transfer> variations(const Path& path, const Machine& machine, const Layout& layout) {
    const Transfer plain{path, 0, {}, layout};
    std::vector<Transfer> found{plain};
    const Executor& executor = *Executors::instance().find(path.executor);
    for (const Parameter& parameter : executor.parameters(plain, machine)) {
        for (const std::string& choice : parameter.choices) {
            if (choice == parameter.fallback()) continue;
            found.push_back(plain);
            found.back().parameters[parameter.name] = choice;
        }
    }
    if (layout.kind != Layout::Kind::contiguous) return found;
    for (Memory Path::* side : {&Path::source, &Path::destination}) {
        const MemoryKind& kind = *Memories::instance().find((path.*side).kind);
        for (const Parameter& parameter : kind.info().parameters) {
            for (const std::string& choice : parameter.choices) {
                if (choice == parameter.fallback()) continue;
                Transfer variant = plain;
                (variant.path.*side).variant[parameter.name] = choice;
                found.push_back(std::move(variant));
            }
        }
    }
    return found;
}

// Enough for every size of these tests, and few enough to be reused in turn.
constexpr std::size_t kStaging = std::size_t{64} << 20;

Caller::Caller(const Transfer& transfer, const Machine& machine)
    : transfer_(transfer),
      machine_(machine),
      executor_(Executors::instance().find(transfer.path.executor)),
      engine_(transfer::Engine::make(
          machine, transfer::EngineOptions{.pinned_bytes = kStaging, .relay_bytes = kStaging})) {
    for (const int device : executor_->lanes(transfer, machine)) {
        streams_.push_back(std::make_unique<gpu::Stream>(device));
        lanes_.push_back(streams_.back().get());
    }
}

TimingMode Caller::timing() const { return executor_->timing(transfer_, machine_); }

std::unique_ptr<Execution> Caller::prepare() const {
    for (const auto& [one, other] : executor_->requirements(transfer_, machine_).peers) {
        gpu::enable_peer_access(one, other);
        gpu::enable_peer_access(other, one);
    }
    return executor_->prepare(transfer_, machine_, lanes_, *engine_);
}

void Caller::run(Execution& execution, const View& source, const View& destination) const {
    execution.restore(source, destination);
    execution.start(source, destination);
    if (timing() == TimingMode::device) {
        for (const gpu::Stream* lane : lanes_) lane->synchronize();
    } else {
        execution.finish();
    }
}

std::string move_once(const Caller& caller, Execution& execution, GuardedTransfer& bytes,
                      Offsets offsets, unsigned seed) {
    bytes.lay(offsets, seed);
    caller.run(execution, bytes.source(), bytes.destination());
    return bytes.wrong();
}

}  // namespace waywiser::test
