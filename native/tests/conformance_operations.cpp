// The contract of every operation, tested with each setting alone: on the fake GPU, and on a real
// one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "case_stride.hpp"
#include "conformance.hpp"
#include "quick_operation.hpp"
#include "waywiser/operation.hpp"
#include "waywiser/session.hpp"

namespace waywiser::test {
namespace {

constexpr StopRule kQuick = quick_operation(0.05);
constexpr std::size_t kLargestRange = std::size_t{16} << 20;  // bytes; larger ones only take longer
constexpr double kLongest = 1.0;  // seconds of one operation; more means that something hangs

std::vector<Place> places_of(const Operation& operation, const Machine& machine) {
    std::vector<Place> places;
    for (const Place::Kind kind : operation.place_kinds()) {
        if (kind == Place::Kind::gpu && !machine.gpus.empty()) {
            places.push_back({kind, machine.gpus.back().index, {}});
        }
        if (kind == Place::Kind::numa) places.push_back({kind, machine.numa.front().index, {}});
    }
    return places;
}

// With all defaults, and with each other choice of each parameter.
std::vector<OperationCall> calls_of(const Operation& operation, const Machine& machine) {
    std::vector<OperationCall> calls;
    for (const Place& place : places_of(operation, machine)) {
        calls.push_back({operation.info().name, place, {}});
        for (const Parameter& parameter : operation.parameters(place, machine)) {
            for (const std::string& choice : parameter.choices) {
                const bool large = parameter.name == "bytes" && std::stoul(choice) > kLargestRange;
                if (large || choice == parameter.fallback()) continue;
                calls.push_back({operation.info().name, place, {{parameter.name, choice}}});
            }
        }
    }
    return calls;
}

double median_of(Session& session, const std::string& name, const Place& place,
                 const Settings& settings) {
    const OperationCall call{name, place, settings};
    const Outcome outcome = session.measure({.operation = call, .rule = kQuick}, {});
    std::vector<double> spans;
    for (const Sample& sample : outcome.samples) spans.push_back(sample.span);
    std::ranges::sort(spans);
    return spans[spans.size() / 2];
}

class OperationConformance : public ::testing::TestWithParam<std::string> {
protected:
    const Operation& operation() const { return *Operations::instance().find(GetParam()); }
    Machine machine = this_machine();
};

TEST_P(OperationConformance, TakesASaneTimeWithEachSettingAlone) {
    Session session(machine, {});
    for (const OperationCall& call : few_of(calls_of(operation(), machine))) {
        SCOPED_TRACE(call.text());
        if (const auto reason = unsupported_reason(call, machine)) {
            EXPECT_TRUE(one_line(*reason)) << *reason;
            continue;
        }
        Outcome outcome;
        try {
            outcome = session.measure({.operation = call, .rule = kQuick}, {});
        } catch (const NotSupported&
                     error) {  // not supported, as only trying shows (reserved huge pages, say)
            EXPECT_TRUE(one_line(error.what())) << error.what();
            continue;
        }
        ASSERT_FALSE(outcome.samples.empty());
        EXPECT_EQ(outcome.mode, operation().timing(call.place.kind));
        for (const Sample& sample : outcome.samples) {
            EXPECT_TRUE(std::isfinite(sample.span) && sample.span > 0) << sample.span;
            EXPECT_LT(sample.span, kLongest);
            EXPECT_TRUE(std::isfinite(sample.host) && sample.host > 0) << sample.host;
        }
    }
}

TEST_P(OperationConformance, SaysInALineWhatItIsAndAfterWhom) {
    EXPECT_TRUE(one_line(operation().info().description));
    EXPECT_TRUE(one_line(operation().info().source));
    for (const Place& place : places_of(operation(), machine)) {
        std::set<std::string> names;
        for (const Parameter& parameter : operation().parameters(place, machine)) {
            EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name << " twice";
            EXPECT_TRUE(one_line(parameter.description)) << parameter.name;
            EXPECT_FALSE(parameter.choices.empty()) << parameter.name;
        }
    }
}

TEST_P(OperationConformance, IsRejectedWithAReasonWhereThereIsNoGpu) {
    Machine bare = machine;
    bare.gpus.clear();
    for (const OperationCall& call : calls_of(operation(), machine)) {
        if (const auto reason = unsupported_reason(call, bare)) {
            EXPECT_TRUE(one_line(*reason)) << call.text();
        } else {
            EXPECT_EQ(call.place.kind, Place::Kind::numa) << call.text();
        }
    }
}

std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const auto& entry : Operations::instance().entries()) names.push_back(entry->info().name);
    return names;
}

INSTANTIATE_TEST_SUITE_P(Every, OperationConformance, ::testing::ValuesIn(names()),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// True of any machine whose GPU has its own memory, and so not of the fake.
TEST(OperationsOnAGpu, MemoryHasAHigherLatencyThanACache) {
    const Machine machine = this_machine();
    if (gpu::backend() != "cuda" || machine.gpus.empty()) GTEST_SKIP() << "there is no real GPU";
    Session session(machine, {});
    const Place gpu{Place::Kind::gpu, machine.gpus.front().index, {}};
    const auto load = [&](const Settings& settings) {
        return median_of(session, "sm-latency", gpu, settings);
    };
    const double first_level = load({{"bytes", "16384"}});
    const double second_level = load({{"bytes", "4194304"}});
    const double own = load({});
    const double host = load({{"memory", "numa:" + std::to_string(machine.numa.front().index)}});
    EXPECT_LT(first_level, second_level);
    EXPECT_LT(second_level, own);
    EXPECT_LT(own, host);
    // A fault migrates a page to the GPU; a load of page-locked memory reads a line.
    if (gpu::device(gpu.index).concurrent_managed) {
        EXPECT_LT(host, median_of(session, "page-fault-latency", gpu, {}));
    }
}

// An add that the host must see takes a round trip, like a load.
TEST(OperationsOnAGpu, AddsOnTheHostTakeLongerThanOnTheGpu) {
    const Machine machine = this_machine();
    if (gpu::backend() != "cuda" || machine.gpus.empty()) GTEST_SKIP() << "there is no real GPU";
    Session session(machine, {});
    const Place gpu{Place::Kind::gpu, machine.gpus.front().index, {}};
    EXPECT_LT(median_of(session, "system-atomic", gpu, {}),
              median_of(session, "system-atomic", gpu,
                        {{"on", "numa:" + std::to_string(machine.numa.front().index)}}));
}

}  // namespace
}  // namespace waywiser::test
