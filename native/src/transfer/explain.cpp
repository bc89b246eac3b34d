#include "transfer/explain.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "gpu/gpu.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/policy.hpp"
#include "transfer/side.hpp"

namespace waywiser::transfer {
namespace {

std::string text_of_seconds(double seconds) {
    const bool is_short = seconds < 1e-3;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g %s", seconds * (is_short ? 1e6 : 1e3),
                  is_short ? "us" : "ms");
    return text.data();
}

std::string text_of_bytes(std::uint64_t bytes) {
    constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    auto value = static_cast<double>(bytes);
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g %s", value, kUnits[unit]);
    return text.data();
}

// What the policy expects of a method.
std::string expectation(const PolicyDecision& made, const std::string& file) {
    std::string text = "; policy " + file;
    return text + ": " + made.row->executor + " took " + text_of_seconds(made.row->seconds) +
           " (95 %: " + text_of_seconds(made.row->low) + " to " + text_of_seconds(made.row->high) +
           ") for " + text_of_bytes(made.row->bytes);
}

}  // namespace

std::string explain(Engine& engine, const void* to, const void* from, std::size_t bytes) {
    engine.check_process();
    const gpu::CallerState keep;
    if (bytes == 0) return "nothing to copy";
    check_copy(to, from, bytes);
    const Choice choice = choose(engine, side_of(const_cast<void*>(to), bytes),
                                 side_of(const_cast<void*>(from), bytes), bytes);
    const std::string expected =
        choice.policy == nullptr ? "" : expectation(*choice.policy, engine.policy_file());
    if (choice.method == Choice::Method::plain) return "plain copy: " + choice.why + expected;
    const std::size_t most = engine.options().threads;
    const std::size_t threads =
        choice.shape.threads == 0 ? most : std::min(choice.shape.threads, most);
    std::string text = "chunked copy: " + choice.why + "; chunks of " +
                       std::to_string(choice.shape.chunk >> 10) + " KiB, up to " +
                       std::to_string(threads) + " threads";
    if (!choice.shape.relays.empty()) {
        text += ", relays";
        for (const int relay : choice.shape.relays) text += " gpu:" + std::to_string(relay);
    }
    return text + expected;
}

}  // namespace waywiser::transfer
