// Times the policy of a file in the transfer library: reading, binding to a context, look-ups.
// `policy.py` compiles and runs it.
//
//     ./policy FILE      one JSON object: medians, in seconds
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "transfer/discover.hpp"
#include "transfer/fingerprint.hpp"
#include "transfer/policy.hpp"
#include "transfer/policy_file.hpp"

using namespace waywiser::transfer;

namespace {

constexpr int kRepetitions = 21;
constexpr std::size_t kLookUps = 1 << 16;

// The median time of a call.
template <class Call>
double timed(const Call& call) {
    std::vector<double> seconds;
    for (int i = 0; i < kRepetitions; ++i) {
        const auto start = std::chrono::steady_clock::now();
        call();
        seconds.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRepetitions / 2, seconds.end());
    return seconds[kRepetitions / 2];
}

struct Question {
    PolicyKey key;
    std::size_t bytes;
    std::size_t count;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    const std::string text = read_trusted(arguments[1]);
    const auto policy = std::make_shared<const Policy>(parse_policy(text));
    const PolicyLimits limits{.threads = 16, .relays = {1}, .host_slot = std::size_t{32} << 20};
    const PolicyTable table(policy, limits);
    std::size_t rows = 0;
    for (const PolicyClass& one : policy->classes) rows += one.rows.size();

    const double read = timed([&] { (void)read_trusted(arguments[1]); });
    const double parse = timed([&] { (void)parse_policy(text); });
    const double bind = timed([&] { const PolicyTable made(policy, limits); });
    const waywiser::Machine machine = discover_machine();
    const double identity = timed([&] { (void)identify(machine); });

    // Classes and sizes in random order, so that no branch is predicted from the one before.
    std::minstd_rand random(1);
    std::vector<Question> questions;
    for (std::size_t i = 0; i < kLookUps; ++i) {
        questions.push_back({policy->classes[random() % policy->classes.size()].key,
                             std::size_t{1} << (random() % 33), 1 + random() % 5000});
    }
    std::size_t found = 0;
    const auto each = [&](const auto& look_up) {
        return timed([&] {
                   for (const Question& one : questions) {
                       const PolicyDecision* made = look_up(one);
                       found += made != nullptr ? static_cast<std::size_t>(made->method) : 0;
                   }
               }) /
               kLookUps;
    };
    const double copies = each([&](const Question& one) { return table.copy(one.key, one.bytes); });
    const double lists =
        each([&](const Question& one) { return table.list(one.key, one.count, one.bytes); });
    std::printf(
        "{\"bytes\": %zu, \"rows\": %zu, \"read\": %g, \"parse\": %g, \"bind\": %g, "
        "\"identify\": %g, \"copy\": %g, \"list\": %g, \"found\": %zu}\n",
        text.size(), rows, read, parse, bind, identity, copies, lists, found);
    return 0;
}
