// The file that holds what one process did, as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/aggregate.hpp"
#include "trace/sites.hpp"

namespace waywiser::trace {

struct GpuFacts {
    std::string uuid, name, pci;  // empty: unknown
};

struct ProcessFacts {
    std::string folder;
    std::vector<std::string> command;
    std::string started;  // UTC
    std::uint64_t start_ns = 0, last_ns = 0;
    bool ended = false;
    std::string cupti_path;  // empty: none
    std::uint32_t cupti_version = 0;
    int driver = 0;  // 0: unknown
    std::map<std::string, std::string> notes;
    std::uint64_t dropped = 0;
    bool kernels = false;
    std::map<int, GpuFacts> gpus;
};

// The process begins now.
void set_start(ProcessFacts& facts);

// This process, without what CUPTI and the driver say.
ProcessFacts describe_process(const std::string& folder);

std::string to_json(const ProcessFacts& facts, const Aggregator& sums,
                    const std::vector<std::vector<Frame>>& sites);

// Replaces the file of this process in one step. Returns 0 or the number of the error.
int write_file(const ProcessFacts& facts, const std::string& text);

}  // namespace waywiser::trace
