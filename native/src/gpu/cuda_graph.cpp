// Graphs: the recorded work of a stream.
#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::forget;
using cuda::raw;
using cuda::use;

void detail::GraphDeleter::operator()(void* handle) const noexcept {
    forget(cudaGraphDestroy(static_cast<cudaGraph_t>(handle)));
}
void detail::ExecutableGraphDeleter::operator()(void* handle) const noexcept {
    forget(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(handle)));
}

Graph::Graph(const Stream& stream, const std::function<void()>& enqueue) {
    use(stream.device());
    // Other threads may allocate and synchronise meanwhile.
    WAYWISER_CUDA(cudaStreamBeginCapture(raw(stream), cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
        enqueue();
    } catch (...) {
        forget(cudaStreamEndCapture(raw(stream), &graph));
        if (graph != nullptr) forget(cudaGraphDestroy(graph));
        throw;
    }
    WAYWISER_CUDA(cudaStreamEndCapture(raw(stream), &graph));
    handle_.reset(graph);
}

ExecutableGraph::ExecutableGraph(const Graph& graph) {
    cudaGraphExec_t executable = nullptr;
    WAYWISER_CUDA(cudaGraphInstantiate(&executable, static_cast<cudaGraph_t>(graph.handle()), 0));
    handle_.reset(executable);
}

void ExecutableGraph::launch(const Stream& stream) const {
    use(stream.device());
    WAYWISER_CUDA(cudaGraphLaunch(static_cast<cudaGraphExec_t>(handle_.get()), raw(stream)));
}

}  // namespace waywiser::gpu
