#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "units.hpp"

namespace waywiser {
namespace {

class FakeMemory : public test::OnFake {};

TEST_F(FakeMemory, CopiesTheBytesBetweenAllTypes) {
    gpu::Stream stream(0);
    gpu::DeviceBuffer first(0, 4096);
    gpu::DeviceBuffer second(1, 4096);
    gpu::HostBuffer pinned(4096, gpu::HostUse::portable, 0);
    std::vector<std::byte> in(4096);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7);
    std::vector<std::byte> out(4096);
    gpu::copy_async(first.data(), in.data(), 4096, stream);
    in[0] = std::byte{99};  // the call has already read the source
    gpu::copy_peer_async(second.data(), 1, first.data(), 0, 4096, stream);
    gpu::copy_async(pinned.data(), second.data(), 4096, stream);
    gpu::copy_async(out.data(), pinned.data(), 4096, stream);
    in[0] = std::byte{0};
    EXPECT_EQ(in, out);
}

TEST_F(FakeMemory, NewMemoryIsNotZero) {
    gpu::HostBuffer host(64, gpu::HostUse::portable, 0);
    EXPECT_TRUE(
        std::any_of(host.data(), host.data() + 64, [](std::byte b) { return b != std::byte{0}; }));
}

// For a copy of 8 bytes to each GPU, the fastest of several: whether it took as long as a remote
// one. One fast copy is enough, so that a busy machine needs to let only one of them through.
constexpr double kLocal = 0.02;  // seconds; half of what is added to a remote copy below
std::string remote_gpus(const gpu::HostBuffer& block, int devices) {
    std::string remote;
    for (int device = 0; device < devices; ++device) {
        gpu::Stream stream(device);
        gpu::DeviceBuffer there(device, 8);
        double fastest = 1;
        for (int n = 0; n < 12 && fastest > kLocal; ++n) {
            const auto start = std::chrono::steady_clock::now();
            gpu::copy_async(there.data(), block.data(), 8, stream);
            stream.synchronize();
            const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
            fastest = std::min(fastest, taken.count());
        }
        remote += fastest > kLocal ? 'x' : '.';
    }
    return remote;
}

TEST_F(FakeMemory, ABlockIsRemoteFromTheGpusOfOneHalf) {
    fake::configure("devices=4;remote=40000@2");
    std::set<std::string> seen;
    for (int n = 0; n < 64 && seen.size() < 2; ++n) {  // blocks are assigned to halves at random
        seen.insert(remote_gpus(gpu::HostBuffer(64, gpu::HostUse::portable, 0), 4));
    }
    EXPECT_EQ(seen, (std::set<std::string>{"..xx", "xx.."}));
}

TEST_F(FakeMemory, CatchesCopiesOutOfBounds) {
    gpu::Stream stream(0);
    gpu::DeviceBuffer device(0, 64);
    gpu::HostBuffer pinned(128, gpu::HostUse::portable, 0);
    EXPECT_THROW(gpu::copy_async(device.data(), pinned.data(), 65, stream), gpu::Error);
    EXPECT_THROW(gpu::copy_async(device.data() + 1, pinned.data(), 64, stream), gpu::Error);
    EXPECT_THROW(gpu::copy_async(pinned.data() + 65, device.data(), 64, stream), gpu::Error);
    EXPECT_THROW(gpu::fill_async(device.data() + 60, 0, 5, stream), gpu::Error);
    EXPECT_THROW(gpu::copy_peer_async(device.data(), 1, device.data(), 0, 8, stream), gpu::Error);
    gpu::copy_async(device.data() + 1, pinned.data(), 63, stream);
    stream.synchronize();
}

TEST_F(FakeMemory, CatchesCopiesAcrossTheEdgeOfARegistration) {
    gpu::Stream stream(0);
    gpu::DeviceBuffer device(0, 64);
    std::vector<std::byte> bytes(128);
    const gpu::Registration half(bytes.data() + 64, 64, 0);
    EXPECT_THROW(gpu::copy_async(device.data(), bytes.data() + 32, 64, stream), gpu::Error);
    EXPECT_THROW(gpu::Registration(bytes.data() + 100, 8, 0), gpu::Error);
    gpu::copy_async(device.data(), bytes.data() + 64, 64, stream);
    stream.synchronize();
}

TEST_F(FakeMemory, AnUnpinnedRangeIsPageableAgain) {
    gpu::Stream stream(0);
    std::vector<std::byte> bytes(64);
    {
        const gpu::Registration pinned(bytes.data(), 64, 0);
    }
    EXPECT_THROW(gpu::fill_async(bytes.data(), 0, 64, stream), gpu::Error);
}

TEST_F(FakeMemory, DeviceMemoryRunsOut) {
    fake::configure("memory=2");
    EXPECT_EQ(gpu::free_bytes(0), 2 * kMiB);
    gpu::DeviceBuffer first(0, kMiB);
    EXPECT_EQ(gpu::free_bytes(0), kMiB);
    EXPECT_EQ(gpu::free_bytes(1), 2 * kMiB);
    try {
        gpu::DeviceBuffer second(0, kMiB + 1);
        ADD_FAILURE() << "more than there is was allocated";
    } catch (const gpu::Error& error) {
        EXPECT_EQ(error.kind(), gpu::Failure::out_of_memory);
        EXPECT_EQ(error.call(), "cudaMalloc");
    }
}

TEST_F(FakeMemory, CountsWhatLives) {
    gpu::Stream stream(0);
    gpu::Event event(0);
    gpu::DeviceBuffer device(0, 8);
    gpu::HostBuffer host(8, gpu::HostUse::portable, 0);
    std::vector<std::byte> bytes(8);
    const gpu::Registration registration(bytes.data(), 8, 0);
    EXPECT_EQ(fake::live(), (fake::Live{1, 1, 1, 1, 1, 0}));
    gpu::Stream moved = std::move(stream);
    EXPECT_EQ(fake::live().streams, 1u);
}

TEST_F(FakeMemory, CountsEachAllocatorOfDeviceMemory) {
    const gpu::DeviceBuffer pool(0, 8, gpu::DeviceUse::pool);
    const gpu::DeviceBuffer mapped(0, 8, gpu::DeviceUse::mapped);
    const gpu::DeviceBuffer foreign(0, 8, gpu::DeviceUse::foreign);
    const gpu::ManagedBuffer managed(8, 0);
    const fake::Live live = fake::live();
    EXPECT_EQ(live.device_buffers, 0u);
    EXPECT_EQ(live.pool_buffers, 1u);
    EXPECT_EQ(live.mapped_buffers, 1u);
    EXPECT_EQ(live.foreign_buffers, 1u);
    EXPECT_EQ(live.managed_buffers, 1u);
    fake::configure("oom_at=1+");
    EXPECT_THROW(gpu::DeviceBuffer(0, 8, gpu::DeviceUse::mapped), gpu::Error);
    EXPECT_THROW(gpu::ManagedBuffer(8, 0), gpu::Error);
    EXPECT_EQ(fake::live(), live);
}

TEST_F(FakeMemory, OtherProcessesOpenForeignMemory) {
    gpu::DeviceBuffer foreign(0, 4096, gpu::DeviceUse::foreign);
    foreign.data()[4095] = std::byte{7};
    const gpu::ForeignHandle handle = gpu::foreign_handle(foreign.data());
    const pid_t child = fork();
    if (child == 0) {
        fake::reset();  // as a process that was not forked from one with a GPU
        const gpu::OpenedBuffer opened(0, handle);
        const bool right = opened.data()[4095] == std::byte{7};
        opened.data()[0] = std::byte{9};
        const auto kind = gpu::pointer_info(opened.data()).kind;
        _exit(right && kind == gpu::PointerKind::device ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(foreign.data()[0], std::byte{9});
}

TEST_F(FakeMemory, AProcessOpensItsOwnForeignMemoryAsItIs) {
    gpu::DeviceBuffer foreign(0, 8, gpu::DeviceUse::foreign);
    {
        const gpu::OpenedBuffer opened(0, gpu::foreign_handle(foreign.data()));
        EXPECT_EQ(opened.data(), foreign.data());
        EXPECT_EQ(fake::live().foreign_buffers, 2u);
    }
    EXPECT_EQ(fake::live().foreign_buffers, 1u);
    const gpu::DeviceBuffer plain(0, 8);
    EXPECT_THROW(gpu::foreign_handle(plain.data()), gpu::Error);
}

TEST_F(FakeMemory, DevicesLackWhatIsConfigured) {
    EXPECT_TRUE(gpu::device(0).memory_pools && gpu::device(0).vmm && gpu::device(0).ipc);
    fake::configure("without=pool,vmm,ipc");
    EXPECT_FALSE(gpu::device(0).memory_pools || gpu::device(0).vmm || gpu::device(0).ipc);
    for (const auto use : {gpu::DeviceUse::pool, gpu::DeviceUse::mapped, gpu::DeviceUse::foreign}) {
        EXPECT_THROW(gpu::DeviceBuffer(0, 8, use), gpu::Error);
    }
    gpu::DeviceBuffer plain(0, 8);
}

TEST_F(FakeMemory, StreamOrderedMemoryIsFreedWhenTheStreamGetsThere) {
    fake::configure("memory=1");
    gpu::Stream stream(0);
    gpu::Gate gate{0};
    gate.close(stream);
    std::byte* const data = gpu::allocate_async(kMiB, stream);
    gpu::fill_async(data, 1, kMiB, stream);
    gpu::free_async(data, stream);
    EXPECT_EQ(fake::live().async_allocations, 1u);
    EXPECT_THROW(gpu::allocate_async(1, stream), gpu::Error);
    gate.open();
    stream.synchronize();
    EXPECT_EQ(fake::live().async_allocations, 0u);
    EXPECT_EQ(gpu::free_bytes(0), kMiB);
    EXPECT_THROW(gpu::free_async(data, stream), gpu::Error);
}

// Seconds of one copy between events.
double timed(void* to, const void* from, std::size_t bytes, const gpu::Stream& stream) {
    gpu::Event start(stream.device());
    gpu::Event stop(stream.device());
    start.record(stream);
    gpu::copy_async(to, from, bytes, stream);
    stop.record(stream);
    stop.synchronize();
    return gpu::seconds_between(start, stop);
}

TEST_F(FakeMemory, CopiesLastAsLongAsTheirRateSays) {
    fake::configure("h2d=0.1;d2h=0.2;d2d=0.4;peer=0.8;staged=0.05");
    gpu::Stream stream(0);
    gpu::DeviceBuffer device(0, kMiB);
    gpu::DeviceBuffer local(0, kMiB);
    gpu::DeviceBuffer other(1, kMiB);
    gpu::HostBuffer pinned(kMiB, gpu::HostUse::portable, 0);
    std::vector<std::byte> pageable(kMiB);
    const double bytes = kMiB;
    const auto at_least = [&](double seconds, double gb_per_s) {
        EXPECT_GE(seconds, bytes / (gb_per_s * 1e9));
    };
    at_least(timed(device.data(), pinned.data(), kMiB, stream), 0.1);
    at_least(timed(pinned.data(), device.data(), kMiB, stream), 0.2);
    at_least(timed(local.data(), device.data(), kMiB, stream), 0.4);
    at_least(timed(other.data(), device.data(), kMiB, stream), 0.05);
    at_least(timed(device.data(), pageable.data(), kMiB, stream), 0.05);
    gpu::enable_peer_access(0, 1);
    at_least(timed(other.data(), device.data(), kMiB, stream), 0.8);
}

// A large pageable copy returns to its caller while its last bytes are still in flight.
TEST_F(FakeMemory, PageableToDeviceReturnsBeforeItsEnd) {
    fake::configure("staged=0.01");  // the last MiB takes 0.1 s
    gpu::Stream stream(0);
    gpu::DeviceBuffer device(0, kMiB + 1);
    std::vector<std::byte> pageable(kMiB + 1);
    gpu::copy_async(device.data(), pageable.data(), pageable.size(), stream);
    EXPECT_FALSE(stream.done());
    stream.synchronize();
}

}  // namespace
}  // namespace waywiser
