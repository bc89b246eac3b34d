// Kernels of the fake: functions on the stream's thread.
#include "gpu/launch.hpp"

#include "context.hpp"
#include "handles.hpp"

namespace waywiser::gpu {

void detail::run_on_host(const Stream& stream, std::function<void()> work) {
    using fake::Context;
    const fake::Effects effects = Context::instance().pass(fake::Point::launch, "cudaLaunchKernel");
    const int device = stream.device();
    fake::thread_of(stream).enqueue([work = std::move(work), effects, device] {
        Context& context = Context::instance();
        context.hang(effects);
        if (effects.lost) context.lose();
        context.wait_for_multiprocessors({device});
        if (context.lost()) return;
        work();
        fake::wait_until(fake::later(fake::now(), context.options()->latency_seconds));
    });
}

}  // namespace waywiser::gpu
