// Graphs of the fake: the recorded work of a stream.
#include <memory>
#include <utility>
#include <vector>

#include "context.hpp"
#include "gpu/gpu.hpp"
#include "handles.hpp"

namespace waywiser::gpu {
namespace {

using fake::Context;
using Recorded = std::shared_ptr<const std::vector<std::function<void()>>>;

struct GraphHandle {
    Recorded work;
};

}  // namespace

void detail::GraphDeleter::operator()(void* handle) const noexcept {
    delete static_cast<GraphHandle*>(handle);
    --fake::living().graphs;
}

void detail::ExecutableGraphDeleter::operator()(void* handle) const noexcept {
    delete static_cast<GraphHandle*>(handle);
    --fake::living().executable_graphs;
}

Graph::Graph(const Stream& stream, const std::function<void()>& enqueue) {
    constexpr const char* kCall = "cudaStreamBeginCapture";
    constexpr int kIllegalState = 401;
    Context::instance().check(kCall);
    Context::instance().count(fake::Point::call, kCall);
    auto& thread = fake::thread_of(stream);
    if (!thread.begin_capture()) {
        throw Error(Failure::other, kCall, kIllegalState, "cudaErrorIllegalState");
    }
    try {
        enqueue();
    } catch (...) {
        thread.end_capture();
        throw;
    }
    handle_.reset(new GraphHandle{
        std::make_shared<const std::vector<std::function<void()>>>(thread.end_capture())});
    ++fake::living().graphs;
}

ExecutableGraph::ExecutableGraph(const Graph& graph) {
    Context::instance().check("cudaGraphInstantiate");
    Context::instance().count(fake::Point::call, "cudaGraphInstantiate");
    handle_.reset(new GraphHandle{static_cast<GraphHandle*>(graph.handle())->work});
    ++fake::living().executable_graphs;
}

void ExecutableGraph::launch(const Stream& stream) const {
    const fake::Effects effects = Context::instance().pass(fake::Point::launch, "cudaGraphLaunch");
    const Recorded recorded = static_cast<GraphHandle*>(handle_.get())->work;
    fake::thread_of(stream).enqueue([recorded, effects] {
        Context& context = Context::instance();
        const fake::Instant began = fake::now();
        context.hang(effects);
        if (effects.lost) context.lose();
        if (context.lost()) return;
        fake::wait_until(fake::later(began, context.options()->latency_seconds));
        for (const auto& work : *recorded) work();
    });
}

}  // namespace waywiser::gpu
