// Random copies of several threads over the fake GPU: every byte that has to change, and every one
// that must not, is checked. One seed makes one order of operations in each thread.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "fake/fake.hpp"
#include "fuzz/contexts.hpp"
#include "fuzz/operations.hpp"
#include "fuzz/report.hpp"
#include "fuzz/round.hpp"
#include "fuzz/settings.hpp"

namespace waywiser::fuzz {
namespace {

int list_all() {
    std::printf("operations:\n");
    for (const auto& kind : operation_kinds()) std::printf("  %s\n", kind.name);
    std::printf("contexts:\n");
    for (const auto& kind : context_kinds()) std::printf("  %s\n", kind.name);
    std::printf("faults:\n");
    for (const auto& name : fault_names()) std::printf("  %s\n", name.c_str());
    return 0;
}

int run(const Settings& settings) {
    using Clock = std::chrono::steady_clock;
    choose_operations(settings);
    Report::watch(hang_seconds());
    const auto begin = Clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    std::size_t rounds = 0;
    for (; rounds == 0 || seconds() < settings.seconds; ++rounds) {
        if (settings.rounds != 0 && rounds == settings.rounds) break;
        play_round(settings, settings.seed + rounds);
    }
    std::printf("%zu rounds from seed %llu in %.1f s: nothing is wrong\n", rounds,
                static_cast<unsigned long long>(settings.seed), seconds());
    return 0;
}

}  // namespace
}  // namespace waywiser::fuzz

int main(int count, char** arguments) {
    using namespace waywiser::fuzz;
    setenv("WAYWISER_POLICY", "off", 1);
    try {
        const Settings settings = read_settings(count, arguments);
        return settings.list ? list_all() : run(settings);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "transfer_fuzzer: %s\n", error.what());
        return 1;
    }
}
