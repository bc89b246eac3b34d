#include "transfer/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "gpu/gpu.hpp"
#include "transfer/limits.hpp"

namespace waywiser::transfer {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kProducts = {{
    {"firecracker", "Firecracker"},
    {"cloud hypervisor", "Cloud Hypervisor"},
    {"google", "Google Compute Engine"},
    {"amazon", "Amazon EC2"},
    {"vmware", "VMware"},
    {"microsoft", "Hyper-V"},
    {"virtualbox", "VirtualBox"},
    {"innotek", "VirtualBox"},
    {"openstack", "OpenStack"},
    {"xen", "Xen"},
    {"parallels", "Parallels"},
    {"kvm", "KVM"},
    {"qemu", "QEMU/KVM"},
}};
constexpr std::string_view kSpace("\0 \n\t", 4);

std::string lowered(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

std::string_view stripped(std::string_view text, std::string_view of = kSpace) {
    const std::size_t first = text.find_first_not_of(of);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(of) - first + 1);
}

// The first bytes of a file without surrounding white space: enough for the first processor of
// /proc/cpuinfo, which takes long to read in whole. Empty if the file cannot be read.
std::string contents(const fs::path& file) {
    std::string text(std::size_t{64} << 10, '\0');
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return {};
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    return std::string(stripped(text));
}

std::string product(const std::string& text) {
    const std::string all = lowered(text);
    for (const auto& [key, name] : kProducts) {
        if (all.find(key) != std::string::npos) return std::string(name);
    }
    return {};
}

bool has_word(std::string_view line, std::string_view word) {
    std::istringstream words{std::string(line)};
    for (std::string one; words >> one;) {
        if (one == word) return true;
    }
    return false;
}

// Calls visit(line) for each line.
template <class Visit>
void for_each_line(const std::string& text, const Visit& visit) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) visit(line);
}

int generation_of(const std::string& speed) {
    constexpr std::array<double, 6> kSpeeds = {2.5, 5, 8, 16, 32, 64};  // GT/s
    double value = 0;
    const auto [end, error] = std::from_chars(speed.data(), speed.data() + speed.size(), value);
    const std::string_view rest(end, static_cast<std::size_t>(speed.data() + speed.size() - end));
    if (error != std::errc{} || !rest.starts_with(" GT/s")) return 0;
    const auto found = std::ranges::find(kSpeeds, value);
    return found == kSpeeds.end() ? 0 : static_cast<int>(found - kSpeeds.begin()) + 1;
}

// The kernel writes 63 or 255 for an unknown width.
int width_of(const std::string& text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value > 0 && value <= 32 ? value : 0;
}

struct Link {
    int generation = 0;
    int width = 0;
};

Link link_of(const fs::path& device) {
    return {generation_of(first_line(device / "max_link_speed")),
            width_of(first_line(device / "max_link_width"))};
}

std::string text_of(const Link& link) {
    return "PCIe " + std::to_string(link.generation) + " x" + std::to_string(link.width);
}

}  // namespace

std::string hypervisor_name(const fs::path& root) {
    std::string kind = contents(root / "sys/hypervisor/type");
    if (!kind.empty()) {
        kind = lowered(kind);
        if (kind[0] >= 'a' && kind[0] <= 'z') kind[0] = static_cast<char>(kind[0] - 'a' + 'A');
        return kind;
    }
    const std::string tree = contents(root / "proc/device-tree/hypervisor/compatible");
    if (!tree.empty()) {
        const std::string name = product(tree);
        return name.empty() ? tree.substr(0, tree.find('\0')) : name;
    }
    bool lists_flags = false;
    bool is_flagged = false;
    const std::string cpus = contents(root / "proc/cpuinfo");
    for_each_line(cpus, [&](const std::string& line) {
        if (is_flagged || !line.starts_with("flags")) return;
        lists_flags = true;
        is_flagged = has_word(line, "hypervisor");
    });
    const fs::path dmi = root / "sys/class/dmi/id";
    std::string name = product(contents(dmi / "sys_vendor") + " " + contents(dmi / "product_name") +
                               " " + contents(dmi / "bios_vendor"));
    if (lists_flags) {
        if (!is_flagged) return "none";
        return name.empty() ? "unknown hypervisor" : name;
    }
    if (name == "QEMU/KVM" || name == "KVM" || name == "VMware") return name;
    return cpus.empty() ? "" : "none";
}

std::string cpu_model(const fs::path& root) {
    std::string model;
    std::string other;
    for_each_line(contents(root / "proc/cpuinfo"), [&](const std::string& line) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) return;
        const std::string_view key = stripped(std::string_view(line).substr(0, colon), " \t\r");
        std::string& into = key == "model name" ? model : other;
        if ((key == "model name" || key == "cpu") && into.empty()) {
            into = stripped(std::string_view(line).substr(colon + 1), " \t\r");
        }
    });
    return model.empty() ? other : model;
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build ...".
std::uint64_t driver_major(const fs::path& root) {
    std::istringstream words(first_line(root / "proc/driver/nvidia/version"));
    for (std::string word; words >> word;) {
        std::uint64_t major = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), major);
        const std::string_view rest(end, static_cast<std::size_t>(word.data() + word.size() - end));
        const bool is_version = error == std::errc{} && rest.starts_with('.') &&
                                rest.find_first_not_of("0123456789.") == std::string_view::npos;
        if (is_version) return major;
    }
    return 0;
}

std::vector<std::string> gpu_links(const std::string& pci, const fs::path& root) {
    const fs::path device = root / "sys/bus/pci/devices" / pci;
    const Link own = link_of(device);
    if (pci.empty() || own.generation == 0 || own.width == 0) return {};
    std::vector<std::string> names{text_of(own)};
    std::error_code error;
    const fs::path place = fs::canonical(device, error);
    if (error) return names;
    const Link bridge = link_of(place.parent_path());
    if (bridge.generation == 0 || bridge.width == 0) return names;
    const std::string both =
        text_of({std::min(own.generation, bridge.generation), std::min(own.width, bridge.width)});
    if (both != names.front()) names.push_back(both);
    return names;
}

MachineIdentity identify(const Machine& machine, const fs::path& root) {
    MachineIdentity found;
    Fingerprint& known = found.fingerprint;
    known.cpu = cpu_model(root);
    known.driver = driver_major(root);
    known.hypervisor = hypervisor_name(root);
    if (machine.gpus.empty()) return found;
    try {
        const gpu::Device device = gpu::device(machine.gpus.front().index);
        known.gpu = device.name;
        found.links = gpu_links(device.pci, root);
        if (!found.links.empty()) known.gpu_link = found.links.front();
    } catch (const gpu::Error&) {
    }
    return found;
}

}  // namespace waywiser::transfer
