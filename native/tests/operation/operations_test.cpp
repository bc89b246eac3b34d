#include "waywiser/operation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance.hpp"
#include "fake/fake.hpp"
#include "waywiser/session.hpp"

namespace waywiser {
namespace {

constexpr StopRule kQuick{.target = 0.9,
                          .wanted = 0.9,
                          .minimum = 6,
                          .slow_minimum = 6,
                          .slow_seconds = 0.020,
                          .maximum = 20,
                          .minimum_seconds = 0,
                          .soft_seconds = 0.001,
                          .hard_seconds = 0.02};
constexpr std::size_t kLargest = std::size_t{1} << 20;  // bytes; larger ones only take longer

class OperationsTest : public ::testing::Test {
protected:
    OperationsTest() { fake::reset(); }
    ~OperationsTest() override {
        session.reset();
        EXPECT_EQ(fake::live(), fake::Live{}) << "something outlived the session";
    }

    [[nodiscard]] Place place_of(const Operation& operation) const {
        return operation.place_kinds().front() == Place::Kind::gpu ? Place::parse("gpu:1") : node();
    }
    [[nodiscard]] Place node() const {
        return Place::parse("numa:" + std::to_string(machine.numa.front().index));
    }

    Machine machine = test::this_machine();
    std::unique_ptr<Session> session = std::make_unique<Session>(machine, SessionOptions{});
};

TEST_F(OperationsTest, EveryOneTakesTimeWithEachSettingAlone) {
    ASSERT_FALSE(Operations::instance().entries().empty());
    for (const auto& operation : Operations::instance().entries()) {
        const Place place = place_of(*operation);
        std::vector<Settings> settings{{}};
        for (const Parameter& parameter : operation->parameters(place, machine)) {
            for (const std::string& choice : parameter.choices) {
                const bool large = parameter.name == "bytes" && std::stoul(choice) > kLargest;
                if (!large) settings.push_back({{parameter.name, choice}});
            }
        }
        for (const Settings& chosen : settings) {
            const OperationCall call{operation->info().name, place, chosen};
            ASSERT_EQ(refusal(call, machine), std::nullopt) << call.text();
            const Outcome outcome = session->measure({.operation = call, .rule = kQuick}, {});
            ASSERT_FALSE(outcome.samples.empty()) << call.text();
            EXPECT_TRUE(std::ranges::all_of(outcome.samples, [](const Sample& sample) {
                return std::isfinite(sample.span) && sample.span >= 0 && sample.host > 0;
            })) << call.text();
            EXPECT_EQ(outcome.mode, operation->timing()) << call.text();
        }
    }
}

TEST_F(OperationsTest, EveryOneSaysWhatItIsAndAfterWhom) {
    for (const auto& operation : Operations::instance().entries()) {
        EXPECT_FALSE(operation->info().description.empty()) << operation->info().name;
        EXPECT_FALSE(operation->info().source.empty()) << operation->info().name;
    }
}

TEST_F(OperationsTest, AreRefusedWithAReasonWhereTheyCannotBe) {
    const auto reason = [&](const char* name, const char* place, const Settings& settings = {}) {
        return refusal(OperationCall{name, Place::parse(place), settings}, machine).value_or("");
    };
    EXPECT_EQ(reason("levitate", "gpu:0"), "there is no operation 'levitate'");
    EXPECT_EQ(reason("malloc", "gpu:0"), "malloc is not performed at gpu:0");
    EXPECT_EQ(reason("kernel-launch", "gpu:9"), "this machine has no gpu:9");
    EXPECT_NE(reason("malloc", "numa:0", {{"bytes", "7"}}), "");
    EXPECT_NE(reason("malloc", "numa:0", {{"weight", "7"}}), "");
    EXPECT_THROW(
        session->measure(
            {.operation = OperationCall{"malloc", Place::parse("gpu:0"), {}}, .rule = kQuick}, {}),
        Refused);
}

TEST_F(OperationsTest, ALockedPageNeedsAGpu) {
    Machine without = machine;
    without.gpus.clear();
    const OperationCall call{"host-register", node(), {}};
    EXPECT_NE(refusal(call, without), std::nullopt);
}

TEST_F(OperationsTest, ErrorsOfTheDeviceAreTold) {
    fake::configure("oom_at=/1");
    EXPECT_THROW(
        session->measure({.operation = OperationCall{"device-malloc", Place::parse("gpu:0"), {}},
                          .rule = kQuick},
                         {}),
        gpu::Error);
    fake::reset();
}

TEST_F(OperationsTest, ACacheAnswersSoonerThanMemory) {
    const auto median_of = [&](const char* bytes) {
        const OperationCall call{"core-latency", node(), {{"bytes", bytes}}};
        StopRule rule = kQuick;
        rule.hard_seconds = 0.2;
        const Outcome outcome = session->measure({.operation = call, .rule = rule}, {});
        std::vector<double> spans;
        for (const Sample& sample : outcome.samples) spans.push_back(sample.span);
        std::ranges::sort(spans);
        return spans[spans.size() / 2];
    };
    EXPECT_LT(3 * median_of("16384"), median_of("16777216"));
}

}  // namespace
}  // namespace waywiser
