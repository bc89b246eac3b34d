#include "fuzz/settings.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace waywiser::fuzz {
namespace {

constexpr const char* kUsage =
    "transfer_fuzzer: random copies of several threads over the fake GPU; all bytes are checked\n"
    "  --seconds S       no round starts later than this (10)\n"
    "  --rounds N        at most so many rounds\n"
    "  --seed N          of the first round; those after it have N+1, N+2, ... (the time)\n"
    "  --threads N       in each round (1 to 8, by the seed)\n"
    "  --operations N    of each thread in a round (40)\n"
    "  --faults          calls of the GPU runtime fail in half of the rounds\n"
    "  --hangs           a GPU does not answer for some seconds in some rounds\n"
    "  --only A,B,...    these operations alone\n"
    "  --contexts A,...  these kinds of contexts alone\n"
    "  --compare A,B     each round with contexts of kind A, then of kind B: statuses and bytes\n"
    "                    have to be equal\n"
    "  --fake TEXT       more configuration of the fake GPU, as in native/tests/fake/fake.hpp\n"
    "  --folder PATH     for files without a name (/tmp)\n"
    "  --quiet           prints no line for each round\n"
    "  --list            lists operations, kinds of contexts and faults\n";

[[noreturn]] void reject(const std::string& what) {
    std::fprintf(stderr, "transfer_fuzzer: %s\n%s", what.c_str(), kUsage);
    std::exit(2);
}

std::vector<std::string> parts(const std::string& text) {
    std::vector<std::string> found;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) found.push_back(part);
    return found;
}

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const auto& text : texts) all += (all.empty() ? "" : ",") + text;
    return all;
}

using Value = std::function<void(const std::string&)>;

std::map<std::string, Value> options_with_value(Settings& settings) {
    return {
        {"--seconds", [&](const auto& text) { settings.seconds = std::stod(text); }},
        {"--rounds", [&](const auto& text) { settings.rounds = std::stoull(text); }},
        {"--seed", [&](const auto& text) { settings.seed = std::stoull(text); }},
        {"--threads", [&](const auto& text) { settings.threads = std::stoull(text); }},
        {"--operations", [&](const auto& text) { settings.operations = std::stoull(text); }},
        {"--only", [&](const auto& text) { settings.only = parts(text); }},
        {"--contexts", [&](const auto& text) { settings.contexts = parts(text); }},
        {"--compare", [&](const auto& text) { settings.compare = parts(text); }},
        {"--fake", [&](const auto& text) { settings.fake = text; }},
        {"--folder", [&](const auto& text) { settings.folder = text; }},
    };
}

std::map<std::string, bool*> options_alone(Settings& settings) {
    return {{"--faults", &settings.faults},
            {"--hangs", &settings.hangs},
            {"--quiet", &settings.quiet},
            {"--list", &settings.list}};
}

}  // namespace

Settings read_settings(int count, char** arguments) {
    Settings settings;
    settings.seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                               std::chrono::seconds(1));
    const auto with_value = options_with_value(settings);
    const auto alone = options_alone(settings);
    const std::vector<std::string> given(arguments + 1, arguments + count);
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (const auto found = alone.find(given[i]); found != alone.end()) {
            *found->second = true;
            continue;
        }
        const auto found = with_value.find(given[i]);
        if (found == with_value.end() || i + 1 == given.size()) reject("what is " + given[i] + "?");
        try {
            found->second(given[i + 1]);
        } catch (const std::logic_error&) {
            reject(given[i] + ": '" + given[i + 1] + "' is not a number");
        }
        ++i;
    }
    if (!settings.compare.empty() && settings.compare.size() != 2) reject("--compare takes A,B");
    return settings;
}

bool Settings::chooses(const std::string& operation) const {
    return only.empty() || std::ranges::find(only, operation) != only.end();
}

std::string Settings::command(std::uint64_t round_seed) const {
    std::string text = "transfer_fuzzer --seed " + std::to_string(round_seed) + " --rounds 1";
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) text += std::string(" ") + name + " '" + value + "'";
    };
    if (threads != 0) text += " --threads " + std::to_string(threads);
    if (operations != Settings().operations) text += " --operations " + std::to_string(operations);
    if (faults) text += " --faults";
    if (hangs) text += " --hangs";
    add("--only", joined(only));
    add("--contexts", joined(contexts));
    add("--compare", joined(compare));
    add("--fake", fake);
    if (folder != Settings().folder) add("--folder", folder);
    return text;
}

}  // namespace waywiser::fuzz
