/* A CUDA driver for tests: libcuda.so.1 with what the program and the CUDA runtime ask before they make a context.
   FAKE_DRIVER says how it answers: "init=803 version=12020 gpus=2 sm=70 thread", each word optional. `thread`: cuInit starts
   a thread that stays, as a driver may. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSuccess = 0, kInvalidValue = 1, kNoDevice = 100, kMajor = 75, kMinor = 76 };

static int setting(const char *name, int otherwise) {
  const char *words = getenv("FAKE_DRIVER");
  const char *found = words == NULL ? NULL : strstr(words, name);
  return found == NULL ? otherwise : atoi(found + strlen(name));
}

static void *stay(void *unused) {
  for (;;) pause();
  return unused;
}

int cuInit(unsigned flags) {
  (void)flags;
  pthread_t thread;
  if (setting("thread", -1) == 0 && pthread_create(&thread, NULL, stay, NULL) == 0) pthread_detach(thread);
  return setting("init=", setting("gpus=", 1) == 0 ? kNoDevice : kSuccess);
}
int cuDriverGetVersion(int *version) {
  *version = setting("version=", 13000);
  return kSuccess;
}
int cuDeviceGetCount(int *count) {
  *count = setting("gpus=", 1);
  return kSuccess;
}
int cuDeviceGet(int *device, int index) {
  *device = index;
  return kSuccess;
}
int cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, (size_t)size, "Made-up GPU %d", device);
  return kSuccess;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  const int sm = setting("sm=", 90);
  if (attribute != kMajor && attribute != kMinor) return kInvalidValue;
  *value = attribute == kMajor ? sm / 10 : sm % 10;
  return kSuccess;
}
int cuGetErrorName(int error, const char **name) {
  *name = error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : NULL;
  return *name == NULL ? kInvalidValue : kSuccess;
}
