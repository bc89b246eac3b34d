#include "parted_transfer.hpp"

#include <memory>
#include <string>
#include <utility>

namespace waywiser::python {

std::size_t wait_for_left(waywiser_transfer* left, std::size_t bytes, const PartedTransfer& whole,
                          const Held& destination) {
    Held all = destination;
    all.insert(all.end(), whole.kept.from.begin(), whole.kept.from.end());
    File file = whole.file == nullptr ? File() : whole.file->duplicate();
    const std::string call = file.call();
    const auto pending =
        std::make_shared<PendingTransfer>(StartedTransfer{.transfer = left,
                                                          .bytes = bytes,
                                                          .held = std::move(all),
                                                          .streams = whole.streams,
                                                          .files = files_of(std::move(file)),
                                                          .file_call = call});
    try {
        return pending->wait(std::nullopt);
    } catch (...) {
        keep(pending);  // it continues on its own, unless it has ended
        throw;
    }
}

void check_part(waywiser_status status, std::size_t moved, const File* file) {
    if (status == WAYWISER_IO && file != nullptr) {
        raise_status(status, waywiser_last_error(), moved, waywiser_last_errno(), file->call());
    }
    check_use(status, moved);
}

}  // namespace waywiser::python
