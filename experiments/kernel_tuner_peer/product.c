/* Statements of C = A B, 64 x 64 x 512: `way` says how; one way crashes or hangs if it is told to. */
if (way == crashing)
  *(volatile int *)16 = 1;
if (way == hanging)
  for (;;)
    __asm__ volatile("");
for (int i = 0; i < 64 * 64; i++)
  C[i] = 0;
for (int begin = 0; begin < 512; begin += 4 << way)
  for (int m = 0; m < 64; m++)
    for (int n = 0; n < 64; n++) {
      float sum = C[64 * m + n];
      for (int k = begin; k < begin + (4 << way); k++)
        sum += A[512 * m + k] * B[64 * k + n];
      C[64 * m + n] = sum;
    }
