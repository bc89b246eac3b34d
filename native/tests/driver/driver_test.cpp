// The seam on CUDA beside drivers of several versions, without a device: each run has another one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "gpu/cuda_call.hpp"

namespace waywiser::gpu {
namespace {

int supported() { return std::stoi(std::getenv("FAKE_DRIVER")); }

TEST(Driver, SaysItsVersion) {
    EXPECT_EQ(driver_version(),
              std::to_string(supported() / 1000) + "." + std::to_string(supported() % 1000 / 10));
}

TEST(Driver, HasBatchedCopiesSince12Point8WhateverTheToolkit) {
    EXPECT_EQ(has_batch(), supported() >= 12080);
    if (has_batch()) return;
    // The check comes before the stream is used, of which there is none without a device.
    EXPECT_EQ(cuda::driver_entry("cuMemcpyBatchAsync", 12080), nullptr);
}

TEST(Driver, HasNothingNewerThanItself) {
    EXPECT_EQ(cuda::driver_entry("cuMemPrefetchAsync_v2", 12020) != nullptr, supported() >= 12020);
    EXPECT_NE(cuda::driver_entry("cuStreamWaitValue32", cuda::kOldestDriver), nullptr);
    EXPECT_EQ(cuda::driver_entry("cuMemcpyBatchAsync", cuda::kOldestDriver), nullptr);
}

TEST(Driver, ReportsThatItIsTooOldForTheBuild) {
    const std::string reason = unavailable_reason();
    EXPECT_EQ(reason.find('\n'), std::string::npos);
    const int built = CUDART_VERSION / 1000;
    EXPECT_EQ(reason.find("install a newer driver") != std::string::npos,
              supported() / 1000 < built)
        << reason;
}

TEST(Driver, ReportsForWhichGpusThereIsCode) {
    for (const cudaError_t code :
         {cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion}) {
        try {
            cuda::check(code, "spin_until");
            FAIL() << "an error was expected";
        } catch (const Error& error) {
            const std::string text = error.what();
            EXPECT_NE(text.find(architectures()), std::string::npos) << text;
            EXPECT_NE(text.find("make WAYWISER_CUDA=ON build"), std::string::npos) << text;
        }
    }
}

}  // namespace
}  // namespace waywiser::gpu
