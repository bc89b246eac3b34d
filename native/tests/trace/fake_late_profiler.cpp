// A profiler that is linked to CUPTI, and that the program starts itself when it likes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "fake_tools.hpp"

namespace fake::late_profiler {

namespace {

int calls = 0, records = 0;

void give(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *size = 1 << 16;
    *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
    *most = 0;
}

void take(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    for (std::uint8_t* record = nullptr; cuptiActivityGetNextRecord(buffer, valid, &record) == 0;)
        ++records;
    std::free(buffer);
}

void count_call(void*, std::uint32_t, std::uint32_t, const void*) { ++calls; }

}  // namespace

extern "C" {

int late_start() {
    void* subscriber = nullptr;
    const int result = cuptiSubscribe(&subscriber, count_call, nullptr);
    if (result != 0) return result;
    cuptiEnableCallback(1, subscriber, 2, 31);
    return cuptiActivityRegisterCallbacks(give, take);
}

int late_calls() { return calls; }

int late_records() {
    cuptiActivityFlushAll(1);
    return records;
}
}

}  // namespace fake::late_profiler
