// What several rings of one route submit together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "async_call.hpp"
#include "conformance.hpp"
#include "ring_parts.hpp"
#include "transfer/job.hpp"
#include "units.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kSlot = kMiB;
constexpr std::size_t kRings = 4;
constexpr std::size_t kSlotsOfRing = 4;

// Fills slots of several rings, and keeps how many were submitted by each call. The GPU does not
// start before all slots are filled.
class Filling final : public Job {
public:
    Filling(std::byte* to, const std::byte* from, std::size_t bytes, gpu::Gate& gate)
        : Job(bytes, {.slot = kSlot, .piece = kSlot, .slots = kSlotsOfRing, .rings = kRings},
              CpuWork::fills),
          to_(to),
          from_(from),
          gate_(gate) {
        most_threads_ = kRings;
        routes_.push_back({.device = 0, .direction = Direction::in, .through_host = true});
    }
    void fill(const Part& part, std::byte* slot) override {
        std::memcpy(slot, from_ + part.at, part.bytes);
        ++filled;
    }
    void submit(std::span<const Submission> made) override {
        if (calls.empty()) gate_.close(*made.front().stream);
        calls.push_back(made.size());
        for (const Submission& one : made) {
            gpu::copy_async(to_ + one.part.at, one.slot, one.part.bytes, *one.stream);
        }
    }

    std::size_t filled = 0;
    std::vector<std::size_t> calls;

private:
    std::byte* const to_;
    const std::byte* const from_;
    gpu::Gate& gate_;
};

class RouteQueues : public RingParts {};

TEST_F(RouteQueues, SubmitSlotsTogetherThatWereFilledWhileTheGpuWasBusy) {
    for (const std::size_t bytes : {33 * kSlot, 40 * kSlot + 12345}) {
        std::vector<std::byte> from(bytes);
        for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i / 999);
        const gpu::DeviceBuffer device(0, bytes);
        gpu::Gate gate(0);
        Filling job(device.data(), from.data(), bytes, gate);
        job.open(resources, nullptr);
        for (std::size_t seat = 0; seat < kRings; ++seat) {
            EXPECT_EQ(job.work(seat), Step::awaits);
        }
        EXPECT_EQ(job.filled, kRings * kSlotsOfRing) << "slots that the GPU has not read";
        const std::size_t before = job.calls.size();
        EXPECT_EQ(before, 8U) << "8 MiB are on their way";
        gate.open();
        const Deadline deadline(test::kHangSeconds);
        for (std::size_t seat = 0; !job.is_over() && !deadline.is_over(); ++seat) {
            static_cast<void>(job.work(seat));
        }
        EXPECT_EQ(job.moved(), bytes);
        std::size_t all = 0;
        for (const std::size_t call : job.calls) all += call;
        EXPECT_EQ(all, (bytes + kSlot - 1) / kSlot);
        // One slot of each of the two rings that were held back, at least, and 4 MiB at most.
        const std::size_t most = std::ranges::max(std::span(job.calls).subspan(before));
        EXPECT_GE(most, 2U);
        EXPECT_LE(most, 4U);
        job.close_rings();
        std::vector<std::byte> arrived(bytes);
        const gpu::Stream stream(0);
        gpu::copy_async(arrived.data(), device.data(), bytes, stream);
        stream.synchronize();
        EXPECT_TRUE(arrived == from);
    }
}

}  // namespace
}  // namespace waywiser::transfer
