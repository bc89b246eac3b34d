// A session over the fake GPU, and requests to it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "units.hpp"
#include "waywiser/session.hpp"

namespace waywiser {

// Wide enough to be reached at once, so that tests are fast on a busy machine.
inline constexpr StopRule kQuick{.target = 0.5,
                                 .wanted = 0.5,
                                 .minimum = 10,
                                 .slow_minimum = 6,
                                 .slow_seconds = 0.020,
                                 .maximum = 200,
                                 .soft_seconds = 0.01,
                                 .hard_seconds = 0.1};

class SessionTest : public test::OnFake {
public:
    ~SessionTest() override { fake::reset(); }  // the session ends on a fake that works
    SessionTest(const SessionTest&) = delete;
    SessionTest& operator=(const SessionTest&) = delete;

protected:
    SessionTest() = default;

    static Request request(const char* source, const char* source_place, const char* destination,
                           const char* destination_place, const char* executor, std::size_t bytes,
                           const Settings& parameters = {}) {
        const Path path{{source, Place::parse(source_place), {}},
                        {destination, Place::parse(destination_place), {}},
                        executor};
        return {.transfers = {{path, bytes, parameters}}, .rule = kQuick};
    }
    static Request to_gpu(std::size_t bytes) {
        return request("pinned", node.c_str(), "device", "gpu:0", "copy-engine", bytes);
    }
    static Request from_gpu(std::size_t bytes) {
        return request("device", "gpu:0", "pinned", node.c_str(), "copy-engine", bytes);
    }
    static Request peer(std::size_t bytes, const char* access) {
        return request("device", "gpu:0", "device", "gpu:1", "copy-engine", bytes,
                       {{"peer", access}});
    }

    Outcome measure(const Request& requested) {
        if (!session) session = std::make_unique<Session>(test::this_machine(), options);
        return session->measure(requested, nullptr);
    }

    static const std::string node;
    SessionOptions options{.memory_bytes = 512 * kMiB, .host_timed = {}};
    std::unique_ptr<Session> session;
};

inline const std::string SessionTest::node =
    Place{Place::Kind::numa, test::this_machine().numa.front().index, {}}.text();

inline void expect_valid(const Outcome& outcome, std::size_t transfers) {
    EXPECT_TRUE(outcome.stop == "converged" || outcome.stop == "budget" || outcome.stop == "limit")
        << outcome.stop;
    EXPECT_GE(outcome.samples.size(), 6u);
    for (const Sample& sample : outcome.samples) {
        ASSERT_EQ(sample.transfers.size(), transfers);
        for (const double seconds : sample.transfers) {
            EXPECT_GT(seconds, 0);
            EXPECT_LE(seconds, sample.span * (1 + 1e-9));
        }
        EXPECT_GT(sample.host, 0);
        EXPECT_GE(sample.skew, 0);
        EXPECT_GE(sample.repetitions, 1u);
        EXPECT_TRUE(std::isfinite(sample.span));
    }
    EXPECT_GT(outcome.setup_seconds, 0);
    EXPECT_GT(outcome.sampling_seconds, 0);
}

}  // namespace waywiser
