/* A copy with libwaywiser_transfer between host memories: it needs no GPU. */
#include <stdio.h>
#include <string.h>
#include <waywiser/transfer.h>

int main(void) {
    static char source[100000], copied[sizeof source];
    waywiser_context* context = NULL;
    waywiser_options options = {.size = sizeof options, .threads = 1};

    memset(source, 'w', sizeof source);
    if (waywiser_context_create(&options, &context) != WAYWISER_OK ||
        waywiser_copy(context, copied, source, sizeof source, NULL) != WAYWISER_OK) {
        printf("failed: %s\n", waywiser_last_error());
        return 1;
    }
    waywiser_context_release(context);
    if (memcmp(source, copied, sizeof source) != 0) {
        printf("failed: the bytes differ\n");
        return 1;
    }
    printf("copied %zu bytes with interface %u\n", sizeof source,
           (unsigned)waywiser_transfer_abi());
    return 0;
}
