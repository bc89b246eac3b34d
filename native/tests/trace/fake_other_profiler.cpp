// Another profiler that the driver is made to load. It counts what CUPTI (FAKE_OTHER_CUPTI)
// delivers to it, and writes both numbers to FAKE_OTHER_COUNTS at the end.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace fake::other_profiler {

namespace {

int calls = 0, records = 0;
void* cupti = nullptr;

template <typename Function>
Function function(const char* name) {
    return reinterpret_cast<Function>(dlsym(cupti, name));
}

void give(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *size = 1 << 16;
    *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
    *most = 0;
}

void take(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    const auto next =
        function<int (*)(std::uint8_t*, std::size_t, std::uint8_t**)>("cuptiActivityGetNextRecord");
    for (std::uint8_t* record = nullptr; next(buffer, valid, &record) == 0;) ++records;
    std::free(buffer);
}

void count_call(void*, std::uint32_t, std::uint32_t, const void*) { ++calls; }

void write_counts() {
    function<int (*)(std::uint32_t)>("cuptiActivityFlushAll")(1);
    std::FILE* const file = std::fopen(std::getenv("FAKE_OTHER_COUNTS"), "we");
    std::fprintf(file, "%d %d\n", calls, records);
    std::fclose(file);
}

}  // namespace

extern "C" int InitializeInjection() {
    cupti = dlopen(std::getenv("FAKE_OTHER_CUPTI"), RTLD_NOW);
    void* subscriber = nullptr;
    function<int (*)(void**, decltype(&count_call), void*)>("cuptiSubscribe")(&subscriber,
                                                                              count_call, nullptr);
    function<int (*)(std::uint32_t, void*, std::uint32_t, std::uint32_t)>("cuptiEnableCallback")(
        1, subscriber, 2, 31);
    function<int (*)(decltype(&give), decltype(&take))>("cuptiActivityRegisterCallbacks")(give,
                                                                                          take);
    function<int (*)(std::uint32_t)>("cuptiActivityEnable")(1);
    std::atexit(write_counts);
    return 1;
}

}  // namespace fake::other_profiler
