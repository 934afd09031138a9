// What a device says about itself. The device must exist; the functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_DEVICE_H
#define TIDEMARK_SIMULATOR_DEVICE_H

#include "simulator/state.h"

void sim__device_properties(struct cudaDeviceProp *properties, int device);
// False for an attribute that the device has no answer for.
bool sim__device_attribute(int device, enum cudaDeviceAttr attribute, int *value);

#endif
