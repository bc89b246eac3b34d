#include <atomic>
#include <memory>
#include <stdexcept>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"

namespace waywiser {
namespace {

class FakeGraph : public test::OnFake {
protected:
    struct Count {
        std::atomic<int>* runs;
        void operator()(gpu::Thread) const { ++*runs; }
    };
    gpu::Stream stream{0};
    std::atomic<int> runs{0};
};

TEST_F(FakeGraph, RunsAtEachLaunchInStreamOrder) {
    const gpu::Graph graph(stream, [&] { gpu::launch(stream, {}, Count{&runs}); });
    stream.synchronize();
    EXPECT_EQ(runs, 0);
    const auto executable = std::make_unique<gpu::ExecutableGraph>(graph);
    gpu::Gate gate{0};
    gate.close(stream);
    executable->launch(stream);
    executable->launch(stream);
    EXPECT_EQ(runs, 0);
    gate.open();
    stream.synchronize();
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(fake::counts().launches, 3u);  // recorded once, launched twice
    EXPECT_EQ(fake::live().graphs, 1u);
    EXPECT_EQ(fake::live().executable_graphs, 1u);
}

TEST_F(FakeGraph, OutlivesTheGraphAndItsOwnLaunch) {
    gpu::Gate gate{0};
    gate.close(stream);
    {
        const gpu::ExecutableGraph executable(
            gpu::Graph(stream, [&] { gpu::launch(stream, {}, Count{&runs}); }));
        executable.launch(stream);
    }
    gate.open();
    stream.synchronize();
    EXPECT_EQ(runs, 1);
}

TEST_F(FakeGraph, TakesNoPageableBytesAlong) {
    const gpu::DeviceBuffer device(0, 4);
    std::vector<std::byte> pageable(4, std::byte{1});
    const gpu::ExecutableGraph executable(
        gpu::Graph(stream, [&] { gpu::copy_async(device.data(), pageable.data(), 4, stream); }));
    pageable[0] = std::byte{2};
    executable.launch(stream);
    stream.synchronize();
    EXPECT_EQ(device.data()[0], std::byte{2});
}

TEST_F(FakeGraph, WaitingWhileRecordingIsAnErrorAndEndsIt) {
    EXPECT_THROW(gpu::Graph(stream, [&] { stream.synchronize(); }), gpu::Error);
    EXPECT_THROW(gpu::Graph(stream, [&] { static_cast<void>(stream.done()); }), gpu::Error);
    EXPECT_THROW(gpu::Graph(stream, [&] { gpu::Graph(stream, [] {}); }), gpu::Error);
    EXPECT_THROW(gpu::Graph(stream, [] { throw std::logic_error("other"); }), std::logic_error);
    gpu::launch(stream, {}, Count{&runs});
    stream.synchronize();
    EXPECT_EQ(runs, 1);
}

TEST_F(FakeGraph, LaunchesAreStruck) {
    const gpu::ExecutableGraph executable(gpu::Graph(stream, [] {}));
    fake::configure("fail=launch");
    EXPECT_THROW(executable.launch(stream), gpu::Error);
    fake::configure("lost=launch");
    executable.launch(stream);
    EXPECT_THROW(stream.synchronize(), gpu::Error);
}

}  // namespace
}  // namespace waywiser
