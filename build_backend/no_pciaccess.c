// A libpciaccess that has nothing. The hwloc of wheels asks for the library, which few machines have,
// and reads PCI devices from /sys if it does not start.
#include <errno.h>
#include <stddef.h>

int pci_system_init(void) { return ENOSYS; }
void pci_system_cleanup(void) {}
int pci_device_probe(void) { return ENOSYS; }
int pci_device_cfg_read(void) { return ENOSYS; }
void* pci_device_next(void) { return NULL; }
void pci_get_strings(void) {}
void* pci_slot_match_iterator_create(void) { return NULL; }
void pci_iterator_destroy(void) {}
