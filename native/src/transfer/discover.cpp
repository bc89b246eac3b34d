#include "transfer/discover.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

#include "gpu/gpu.hpp"
#include "host/affinity.hpp"
#include "transfer/limits.hpp"

namespace waywiser::transfer {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20) {
            out += "\\u00";
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string listed(const std::vector<int>& numbers) {
    std::string out = "[";
    for (const int number : numbers) {
        out += (out.size() > 1 ? ", " : "") + std::to_string(number);
    }
    return out + "]";
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
    std::vector<int> cpus;
    std::istringstream stream(text);
    for (std::string range; std::getline(stream, range, ',');) {
        int first = 0;
        const char* const end = range.data() + range.size();
        auto [at, error] = std::from_chars(range.data(), end, first);
        if (error != std::errc{}) continue;
        int last = first;
        if (at != end && *at == '-') std::from_chars(at + 1, end, last);
        for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    }
    return cpus;
}

std::string cpu_list(const std::vector<int>& numbers) {
    std::string out;
    for (auto first = numbers.begin(); first != numbers.end();) {
        auto last = first;
        while (std::next(last) != numbers.end() && *std::next(last) == *last + 1) ++last;
        if (!out.empty()) out += ',';
        out += std::to_string(*first);
        if (last != first) out.append(1, '-').append(std::to_string(*last));
        first = std::next(last);
    }
    return out.empty() ? "none" : out;
}

std::vector<NumaNode> numa_nodes(const fs::path& system) {
    const std::vector<int> allowed = host::allowed_cpus();
    std::vector<NumaNode> nodes;
    for (const int index : parse_cpu_list(first_line(system / "has_memory"))) {
        NumaNode node{index, {}};
        const auto listed_cpus =
            parse_cpu_list(first_line(system / ("node" + std::to_string(index)) / "cpulist"));
        std::ranges::set_intersection(listed_cpus, allowed, std::back_inserter(node.cpus));
        nodes.push_back(std::move(node));
    }
    if (nodes.empty()) nodes.push_back({0, allowed});
    return nodes;
}

int numa_of_pci(const std::string& address, const fs::path& devices) {
    std::ifstream stream(devices / address / "numa_node");
    int node = -1;
    return stream >> node ? node : -1;
}

Machine discover_machine() {
    Machine machine{.numa = numa_nodes(), .gpus = {}, .files = {}};
    for (int index = 0; index < gpu::device_count(); ++index) {
        const gpu::Device device = gpu::device(index);
        GpuPlace place{index, device.uuid, numa_of_pci(device.pci), {}, device.pageable_access};
        if (machine.node(place.numa) == nullptr) place.numa = -1;
        for (int other = 0; other < gpu::device_count(); ++other) {
            if (other != index && gpu::can_access_peer(index, other)) place.peers.push_back(other);
        }
        machine.gpus.push_back(std::move(place));
    }
    return machine;
}

std::string machine_json(const Machine& machine) {
    std::string nodes;
    for (const NumaNode& node : machine.numa) {
        nodes += (nodes.empty() ? "" : ", ");
        nodes +=
            "{\"index\": " + std::to_string(node.index) + ", \"cpus\": " + listed(node.cpus) + "}";
    }
    std::string gpus;
    for (const GpuPlace& place : machine.gpus) {
        const gpu::Device device = gpu::device(place.index);
        gpus += (gpus.empty() ? "" : ", ");
        gpus += "{\"index\": " + std::to_string(place.index) +
                ", \"name\": " + quoted(device.name) + ", \"uuid\": " + quoted(place.uuid) +
                ", \"pci\": " + quoted(device.pci) + ", \"numa\": " + std::to_string(place.numa) +
                ", \"memory_bytes\": " + std::to_string(device.memory_bytes) +
                ", \"peers\": " + listed(place.peers) + "}";
    }
    const std::string reason = gpu::unavailable_reason();
    return "{\"numa\": [" + nodes + "], \"gpus\": [" + gpus +
           "], \"threads\": " + std::to_string(thread_limit()) +
           ", \"local_ranks\": " + std::to_string(local_ranks()) +
           ", \"gpu_backend\": " + quoted(gpu::backend()) +
           ", \"gpu_unavailable\": " + quoted(reason) +
           ", \"gpu_of_parent\": " + (reason == gpu::kForkedReason ? "true" : "false") + "}";
}

}  // namespace waywiser::transfer
