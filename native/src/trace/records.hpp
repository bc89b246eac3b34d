// CUPTI's records in this library's own form.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/aggregate.hpp"
#include "trace/cupti_abi.hpp"

namespace waywiser::trace {

struct RecordsOf {
    std::uint32_t cupti_version = 0;
    std::int64_t clock_step = 0;   // what is added to times of CUPTI
    std::uint64_t not_before = 0;  // what began earlier belongs to another process
};

void add_record(Aggregator& sums, const cupti::Record& record, const RecordsOf& from);

}  // namespace waywiser::trace
