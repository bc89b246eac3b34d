#include "trace/process_file.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>

#include "trace/clock.hpp"
#include "trace/json_writer.hpp"

namespace waywiser::trace {
namespace {

constexpr std::array kOperationNames{"copy", "peer-copy", "set", "library-copy"};
constexpr std::array kKindNames{"unknown", "pageable", "pinned", "device", "array", "managed"};
constexpr std::array kDirectionNames{"", "H2D", "D2H", "D2D", "H2H", "P2P"};
constexpr std::array kMemoryNames{"", "", "pin-allocate", "pin-register", "pin-free", "unregister"};
constexpr std::array kManagedNames{"H2D", "D2H", "D2D", "fault"};

template <typename Names, typename Value>
const char* name_in(const Names& names, Value value) {
    return names[static_cast<std::size_t>(value)];
}

void write_known(JsonWriter& json, const char* name, const std::string& text) {
    json.key(name);
    text.empty() ? json.null() : json.value(text);
}

void write_gpu(JsonWriter& json, int gpu) {
    json.key("gpu");
    gpu < 0 ? json.null() : json.value(gpu);
}

void write_rank(JsonWriter& json) {
    json.key("rank");
    for (const char* const name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
        const char* const value = std::getenv(name);
        if (value == nullptr || *value == '\0') continue;
        char* end = nullptr;
        const long rank = std::strtol(value, &end, 10);
        if (*end == '\0' && rank >= 0) return json.value(rank);
    }
    json.null();
}

void write_process(JsonWriter& json, const ProcessFacts& facts) {
    json.key("process").begin_object();
    json.key("pid").value(getpid());
    json.key("parent").value(getppid());
    json.key("command").begin_list();
    for (const std::string& word : facts.command) json.value(word);
    json.end_list();
    json.key("started").value(facts.started);
    json.key("start_ns").value(facts.start_ns);
    json.key("last_ns").value(facts.last_ns);
    json.key("ended").value(facts.ended);
    write_rank(json);
    json.end_object();
    json.key("cupti");
    if (facts.cupti_path.empty()) {
        json.null();
    } else {
        json.begin_object();
        json.key("version").value(facts.cupti_version);
        json.key("path").value(facts.cupti_path);
        json.end_object();
    }
    json.key("driver");
    facts.driver == 0 ? json.null() : json.value(facts.driver);
    json.key("notes").begin_list();
    for (const auto& [code, text] : facts.notes) {
        json.begin_object();
        json.key("code").value(code);
        json.key("text").value(text);
        json.end_object();
    }
    json.end_list();
    json.key("dropped_records").value(facts.dropped);
    json.key("kernels_recorded").value(facts.kernels);
}

void write_sites(JsonWriter& json, const std::vector<std::vector<Frame>>& sites) {
    json.key("sites").begin_list();
    for (const std::vector<Frame>& frames : sites) {
        json.begin_object();
        json.key("frames").begin_list();
        for (const Frame& frame : frames) {
            json.begin_object();
            json.key("language").value(frame.python ? "python" : "native");
            write_known(json, frame.python ? "file" : "module", frame.place);
            write_known(json, "function", frame.function);
            if (!frame.python) {
                json.key("offset").value(frame.offset);
            } else {
                json.key("line");
                frame.line > 0 ? json.value(frame.line) : json.null();
            }
            json.end_object();
        }
        json.end_list();
        json.end_object();
    }
    json.end_list();
}

void write_end(JsonWriter& json, const char* name, const End& end) {
    json.key(name).begin_object();
    json.key("kind").value(name_in(kKindNames, end.kind));
    write_gpu(json, end.gpu);
    json.end_object();
}

void write_group(JsonWriter& json, const Group& group) {
    const auto if_traced = [&](const char* name, std::uint64_t value) {
        json.key(name);
        group.traced_calls > 0 ? json.value(value) : json.null();
    };
    json.begin_object();
    json.key("site").value(group.key.site);
    json.key("operation").value(name_in(kOperationNames, group.key.operation));
    write_known(json, "direction", name_in(kDirectionNames, group.key.direction));
    json.key("graph").value(group.key.graph);
    write_end(json, "from", group.key.from);
    write_end(json, "to", group.key.to);
    json.key("bytes_log2").value(group.key.bytes_log2);
    json.key("copies").value(group.copies);
    json.key("calls").value(group.calls);
    json.key("bytes").value(group.bytes);
    json.key("least_bytes").value(group.copies == 0 ? 0 : group.least_bytes);
    json.key("most_bytes").value(group.most_bytes);
    json.key("device_ns").value(group.device_ns);
    if_traced("call_ns", group.call_ns);
    json.key("exposed_ns").value(group.exposed_ns);
    json.key("alone_ns").value(group.alone_ns);
    if_traced("lost_ns", group.lost_ns);
    json.key("asynchronous").value(group.asynchronous);
    if_traced("waited", group.waited);
    if_traced("wait_ns", group.wait_ns);
    if_traced("slept_after", group.slept_after);
    json.key("sleeps").value(group.sleeps);
    json.key("addressed").value(group.addressed);
    json.key("repeated").value(group.repeated);
    json.key("nodes").begin_object();
    for (const auto& [node, pages] : group.nodes) json.key(std::to_string(node)).value(pages);
    json.end_object();
    if_traced("new_pages", group.new_pages);
    json.key("sampled_pages").value(group.sampled_pages);
    json.key("during_collective_ns").value(group.during_collective_ns);
    json.end_object();
}

void write_calls(JsonWriter& json, const Aggregator& sums) {
    json.key("memory").begin_list();
    for (const auto& [key, calls] : sums.memory_calls()) {
        json.begin_object();
        json.key("site").value(key.first);
        json.key("operation").value(name_in(kMemoryNames, key.second));
        json.key("calls").value(calls.calls);
        json.key("ns").value(calls.nanoseconds);
        json.key("bytes").value(calls.bytes);
        json.end_object();
    }
    json.end_list();
    json.key("managed").begin_list();
    for (const auto& [key, managed] : sums.managed()) {
        json.begin_object();
        write_gpu(json, managed.gpu);
        json.key("direction").value(name_in(kManagedNames, managed.what));
        json.key("count").value(managed.count);
        json.key("bytes").value(managed.bytes);
        json.key("ns").value(managed.nanoseconds);
        json.end_object();
    }
    json.end_list();
    json.key("waits").begin_list();
    for (const auto& [site, calls] : sums.waits()) {
        json.begin_object();
        json.key("site").value(site);
        json.key("calls").value(calls.calls);
        json.key("ns").value(calls.nanoseconds);
        json.end_object();
    }
    json.end_list();
}

void write_gpus(JsonWriter& json, const ProcessFacts& facts, const Aggregator& sums) {
    json.key("gpus").begin_list();
    for (const auto& [number, gpu] : sums.gpus()) {
        const auto known = facts.gpus.find(number);
        const GpuFacts gpu_facts = known == facts.gpus.end() ? GpuFacts{} : known->second;
        const Sweep::Totals& totals = gpu.sweep.totals();
        json.begin_object();
        json.key("gpu").value(number);
        write_known(json, "uuid", gpu_facts.uuid);
        write_known(json, "name", gpu_facts.name);
        write_known(json, "pci", gpu_facts.pci);
        json.key("kernels").value(gpu.kernels);
        json.key("kernel_ns").value(totals.kernel);
        json.key("copy_ns").value(totals.copy);
        json.key("exposed_ns").value(totals.exposed);
        json.key("lost_ns").value(totals.lost);
        json.key("collective_ns").value(totals.collective);
        json.end_object();
    }
    json.end_list();
}

// As it is written in C++; names of C as they are.
std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text ? std::string(text.get()) : name;
}

void write_timeline(JsonWriter& json, const Aggregator& sums) {
    const Timeline::Second* const worst = sums.timeline().worst();
    json.key("timeline");
    if (worst == nullptr) return json.null();
    std::map<std::uint32_t, std::size_t> names;  // those that are used, by new numbers
    std::vector<std::uint32_t> in_order;
    json.begin_object();
    json.key("start_ns").value(worst->start);
    json.key("end_ns").value(worst->start + 1'000'000'000);
    json.key("complete").value(worst->complete);
    json.key("events").begin_list();
    for (const TimelineEvent& event : worst->events) {
        std::size_t index = event.index;
        if (event.kind == TimelineEvent::Kernel || event.kind == TimelineEvent::Collective) {
            const auto [name, added] = names.emplace(event.index, names.size());
            if (added) in_order.push_back(event.index);
            index = name->second;
        }
        json.begin_list();
        json.value(static_cast<int>(event.kind));
        json.value(event.gpu);
        json.value(event.stream);
        json.value(event.start);
        json.value(event.end);
        json.value(event.bytes);
        json.value(index);
        json.end_list();
    }
    json.end_list();
    json.key("names").begin_list();
    for (const std::uint32_t name : in_order) json.value(demangled(sums.kernel_names()[name]));
    json.end_list();
    json.end_object();
}

std::vector<std::string> command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1)
        words.emplace_back(text.c_str() + at);
    return words;
}

bool write_all(int file, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t written = write(file, text.data() + at, text.size() - at);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        at += static_cast<std::size_t>(written);
    }
    return true;
}

}  // namespace

void set_start(ProcessFacts& facts) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    facts.started = text.data();
    facts.start_ns = facts.last_ns = monotonic_now();
}

ProcessFacts describe_process(const std::string& folder) {
    ProcessFacts facts{.folder = folder, .command = command_line()};
    set_start(facts);
    return facts;
}

std::string to_json(const ProcessFacts& facts, const Aggregator& sums,
                    const std::vector<std::vector<Frame>>& sites) {
    JsonWriter json;
    json.begin_object();
    json.key("format").value("waywiser-trace-process");
    json.key("version").value(1);
    write_process(json, facts);
    write_sites(json, sites);
    json.key("groups").begin_list();
    for (const Group& group : sums.groups()) write_group(json, group);
    json.end_list();
    write_calls(json, sums);
    write_gpus(json, facts, sums);
    write_timeline(json, sums);
    json.end_object();
    return json.text() + "\n";
}

int write_file(const ProcessFacts& facts, const std::string& text) {
    const std::string path = facts.folder + "/trace-" + std::to_string(getpid()) + "-" +
                             std::to_string(facts.start_ns) + ".json";
    const std::string temporary = path + ".part";
    const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return errno;
    const bool written = write_all(file, text);
    int error = written ? 0 : errno;
    if (close(file) != 0 && error == 0) error = errno;
    if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) unlink(temporary.c_str());
    return error;
}

}  // namespace waywiser::trace
