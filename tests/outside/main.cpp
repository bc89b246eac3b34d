// Copies host memory and a file with the installed library. Takes the name of a file to write.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>
#include <waywiser/transfer.hpp>

namespace {

constexpr std::size_t kBytes = (std::size_t{9} << 20) + 13;

void check(bool holds, const char* what) {
    if (holds) return;
    std::printf("failed: %s\n", what);
    std::exit(1);
}

std::vector<unsigned char> pattern() {
    std::vector<unsigned char> bytes(kBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
    }
    return bytes;
}

void copies_memory(waywiser::Context& context, const std::vector<unsigned char>& source) {
    std::vector<unsigned char> copied(source.size());
    context.copy(copied.data(), source.data(), source.size());
    check(copied == source, "copy");

    std::vector<unsigned char> again(source.size());
    const waywiser::TransferHandle transfer =
        context.copy_async(again.data(), source.data(), source.size());
    check(transfer.result() == source.size(), "bytes of copy_async");
    check(transfer.done() && again == source, "copy_async");
}

void copies_a_file(waywiser::Context& context, const char* name,
                   const std::vector<unsigned char>& source) {
    const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(file >= 0, "open");
    check(context.write(file, 0, source.data(), source.size()) == source.size(), "write");
    std::vector<unsigned char> read(source.size());
    check(context.read(file, 0, read.data(), read.size()) == read.size(), "bytes of read");
    check(read == source, "read");
    check(context.read(file, source.size() - 5, read.data(), 100) == 5, "read at the end");
    close(file);
}

void describes(const std::vector<unsigned char>& memory) {
    const waywiser_description description = waywiser::describe(memory.data(), memory.size());
    check(description.kind == WAYWISER_PAGEABLE && description.gpu == -1, "describe");
    check(waywiser::machine_json().front() == '{', "machine_json");
}

void tells_errors(waywiser::Context& context, std::vector<unsigned char> memory) {
    try {
        context.copy(memory.data() + 1, memory.data(), 100);
    } catch (const waywiser::TransferError& error) {
        check(error.status() == WAYWISER_INVALID, "status of an overlap");
        std::printf("not valid: %s\n", error.what());
        return;
    }
    check(false, "an overlap is an error");
}

}  // namespace

int main(int, char** arguments) {
    waywiser::Context context;
    const std::vector<unsigned char> source = pattern();
    copies_memory(context, source);
    copies_a_file(context, arguments[1], source);
    describes(source);
    tells_errors(context, source);
    std::printf("copied %zu bytes with waywiser %s\n", source.size(), waywiser_version());
}
